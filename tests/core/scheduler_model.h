#ifndef TESTS_CORE_SCHEDULER_MODEL_H_
#define TESTS_CORE_SCHEDULER_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/scheduler.h"
#include "tests/core/trajectory.h"

namespace strata {

// A scheduler, the requests that it runs, and a plain model of what it must do:
// pages are written and read as a transformer would, tokens are a function of
// what was read, and everything is compared after every operation.  What is
// wrong fails the test.
class SchedulerModel {
 public:
  struct Live {
    std::unique_ptr<Sequence> sequence;
    Trajectory trajectory;
    std::pair<absl::Time, int64_t> turn;  // of admission
    int num_passed = 0;
    bool has_lost_pages = false;  // to a pre-emption or restart
  };

  // runs_ahead: the tokens of a step are known only after the next one was
  // planned, as where a device runs it meanwhile.
  SchedulerModel(const Scheduler::Options& options, int num_layers,
                 int64_t num_pages, bool runs_ahead);

  // Whether Add may be called.
  bool Fits(const Request& request) const;
  void Add(std::unique_ptr<Request> request);
  // Takes it out; samples held for it go on without it.
  void Remove(Live* live);
  void AdmitNext();
  // False if the switch is not allowed; nothing was done then.
  bool Switch(Live* live, const SharingStrategy& strategy);
  bool Restart(Live* live, const SharingStrategy& strategy);
  void SetPolicy(const PressurePolicy& policy);
  // One step, `elapsed` later.  Sequences at their end are removed.
  void Step(absl::Duration elapsed);
  // The tokens of the latest step are known now.  To be called before Switch
  // and Restart.
  void Deliver();
  // When nothing lives any more: the pool is idle, and evicts all that it
  // keeps.
  void CheckIdle();

  const std::vector<std::unique_ptr<Live>>& live() const { return live_; }
  // Tokens of the one that came to its end last.
  const std::vector<int32_t>& last_tokens() const { return last_tokens_; }
  // What was seen, so that a test can tell that it saw everything.
  const std::map<std::string, int64_t>& seen() const { return seen_; }

 private:
  Live* Find(const Sequence* sequence);
  std::set<Live*> Waiting() const;
  bool UsesIndex(const Request& request) const;
  uint64_t SpaceOf(const Request& request);
  void ReleaseSamples(const Request& request);
  void Deliver(const BatchPlan::Chunk& chunk);
  std::vector<std::vector<uint64_t*>> PlannedCells();
  void WriteRows();

  // Brings the trajectories to what the scheduler says that it did.
  void Follow(const Live* switched = nullptr,
              const SharingStrategy* target = nullptr);
  void FollowAdmission(Live* live);
  void FollowPreemption(Live* victim);
  void FollowFloor(Live* live);
  int64_t FreedBySwitches() const;
  bool HasEvent(SchedulerEvent::Kind kind) const;
  bool HasPressureEvent() const;

  // scheduler_checks.cc
  void CheckPassed(const std::set<Live*>& before, const std::set<Live*>& after);
  void CheckPlan();
  void CheckPool();
  void CheckSequence(const Live& live);
  void CheckContents(bool with_planned_rows);
  void CheckIndex();
  void CheckNoHitWasMissed(const Live& live);
  void CheckNobodyCouldBeDemoted();
  int64_t SavingOf(const Live& live) const;

  uint64_t& CellAt(const Sequence& sequence, int position, int slot);
  uint64_t LastOf(KvPool::PageId page) const {
    return cells_[(page + 1) * int64_t{options_.page_tokens} - 1];
  }

  const Scheduler::Options options_;
  const int num_layers_;
  const bool runs_ahead_;
  KvPool pool_;
  Scheduler scheduler_;
  BatchPlan plan_;
  BatchPlan in_flight_;  // its tokens are not known yet
  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<std::unique_ptr<Live>> live_;
  std::vector<std::unique_ptr<Live>> ended_;  // a plan may point to them
  std::unordered_map<const Sequence*, Live*> by_sequence_;
  std::map<std::string, uint64_t> spaces_;
  std::vector<uint64_t> cells_;         // [page, position in the page]
  std::vector<SchedulerEvent> events_;  // of the latest operation
  int64_t num_added_ = 0;
  bool has_preempted_ = false;  // the latest Plan
  std::vector<int32_t> last_tokens_;
  std::map<std::string, int64_t> seen_;
};

}  // namespace strata

#endif  // TESTS_CORE_SCHEDULER_MODEL_H_
