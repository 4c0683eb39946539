#ifndef CORE_SCHEDULER_H_
#define CORE_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/batch_plan.h"
#include "core/demotion.h"
#include "core/kv_memory.h"
#include "core/kv_pool.h"
#include "core/sequence.h"
#include "core/sharing_strategy.h"

namespace strata {

// What the scheduler did to a sequence.
struct SchedulerEvent {
  enum class Kind { kAdmitted, kPreempted, kSwitched };
  Kind kind;
  Sequence* sequence;
  // Of kSwitched:
  SwitchCause cause = SwitchCause::kClient;
  std::string strategy = {};  // canonical, of positions from `position` on
  int64_t position = 0;
  int64_t freed_pages = 0;
};

// Decides which sequences run, and how many positions of each, in every step:
// continuous batching with chunked prefill against what each sequence really
// holds under its strategy.
//
//   (Add | Release | Remove | Switch | Restart | (Plan Commit))*
//
// A plan is committed once it is on its way to the device, not when it was run:
// what comes later runs after it.  So the tokens that a plan samples may come
// as late as between the next Plan and its Commit, unless NeedsTokens; where
// that ends a sequence, its row in the new plan is wasted.  What the plan in
// flight reads or writes may be given away at once: who gets it runs later.
//
// Admission is all or nothing.  A sequence runs once the pool can promise it
// the pages that it will allocate until its end, so that it never waits for
// memory; or, where admission is optimistic, until the end of its prompt.  What
// then grows and does not fit demotes others, and after that pre-empts the
// newest: pages go, and the tokens are run again later.  One that was
// pre-empted is admitted again only with all that it needs and is not
// pre-empted twice; so nothing thrashes.
//
// Order: by arrival + priority * kPriorityDelay, so that a low priority waits
// longer but not for ever; a pre-empted sequence has the place that it had.  If
// one does not fit, later ones may pass it, at most kMaxBypass times; then
// nothing does until it is admitted.
//
// Pressure: while used and reserved pages are more than the policy's threshold,
// or the first in turn does not fit, requests with a floor are switched to it,
// the largest saving first, no more than is needed.  One that waits may start
// at its floor.
//
// A step costs O(running): what waits beyond kMaxLookahead is not looked at,
// and the prefix of one that does not fit is looked up so seldom that it comes
// to kBlocksLookedUp blocks a step.
//
// Does not own sequences.  Knows no backend, gRPC or clock.  Not thread-safe:
// the engine thread's.
class Scheduler {
 public:
  struct Options {
    int max_sequences = 64;        // running at once
    int max_batched_tokens = 512;  // rows of a step
    int page_tokens = 16;          // positions of a page
    // Admits what its prompt needs, not what it needs until its end; what then
    // does not fit pre-empts.
    bool optimistic = false;
  };
  static constexpr absl::Duration kPriorityDelay = absl::Seconds(10);
  static constexpr int kMaxPriority = 100;  // beyond +-this all are alike
  static constexpr int kMaxBypass = 16;
  // One part in so many of the rows that prompts have.
  static constexpr int kOldestPromptShare = 4;
  // Waiting sequences looked at after one that does not fit.
  static constexpr int kMaxLookahead = 16;
  static constexpr int kBlocksLookedUp = 64;
  // One part in so many of them is for one sequence.
  static constexpr int kLookUpShare = 4;

  // `pool` outlives this.  REQUIRES: all options > 0.
  Scheduler(const Options& options, KvPool* pool);

  void SetPolicy(const PressurePolicy& policy) { policy_ = policy; }
  const PressurePolicy& policy() const { return policy_; }

  // Queues a sequence in state kWaiting or kHeld (a held one waits for
  // Release). REQUIRES: FitRequest accepted the request.  One with nothing to
  // run must be removed before Plan.
  void Add(Sequence* sequence, absl::Time now);

  // Lets a held sequence wait for admission, in the place of its Add.
  void Release(Sequence* sequence);

  // Takes a sequence out, whatever its state; its pages and promises go back to
  // the pool.  It is kEnded then.  No effect on one that is.
  void Remove(Sequence* sequence);

  // The positions that were not run yet are run under `strategy`, and pages
  // that no longer serve go back.  No effect if they were to be anyway. Returns
  // the pages that have become available. REQUIRES: CanSwitch.
  int64_t Switch(Sequence* sequence, const SharingStrategy& strategy, int label,
                 SwitchCause cause);
  // Whether the leaders are a subset, and no more pages are needed than before:
  // a planned switch that then falls away may have saved more.
  bool CanSwitch(const Sequence& sequence,
                 const SharingStrategy& strategy) const;

  // All positions are run anew under `strategy`, which may be any; the sequence
  // gives all pages back and waits for admission.  Returns the pages that have
  // become available beyond those that it needs to be admitted.
  // REQUIRES: PagesAfterRestart is not more than the pool.
  int64_t Restart(Sequence* sequence, const SharingStrategy& strategy,
                  int label);
  int64_t PagesAfterRestart(const Sequence& sequence,
                            const SharingStrategy& strategy, int label) const;

  // Admits what fits and fills `plan`: every decoding sequence one row, then
  // prompt chunks under the token budget, those with the least left first, so
  // that a short request does not wait for a long prompt to end; but the prompt
  // admitted first has its share in every step, so that it does not starve.
  // Allocates the pages of the rows.  `plan` is empty only if nothing runs but
  // what waits for its last token.
  void Plan(absl::Time now, BatchPlan* plan);

  // Admits one sequence, the first in turn that fits, and returns it; null if
  // there is none.  Plan does this too.
  Sequence* AdmitNext();

  // Whether the next plan depends on tokens that are still being sampled.
  bool NeedsTokens() const;

  // The plan is on its way: its positions count as cached, what it samples as
  // being sampled.  Of its sequences, some may have ended (Remove).
  // REQUIRES: all tokens that its rows read are known by now.
  void Commit(const BatchPlan& plan);

  // Swaps what was done since the last call into *events, in order.  To be
  // called before a sequence goes that was acted upon.
  void TakeEvents(std::vector<SchedulerEvent>* events);

  int num_running() const { return static_cast<int>(running_.size()); }
  int num_waiting() const { return static_cast<int>(waiting_.size()); }
  // In order of admission.
  const std::vector<Sequence*>& running() const { return running_; }

 private:
  struct ByTurn {
    bool operator()(const Sequence* a, const Sequence* b) const {
      if (a->ticket.due != b->ticket.due) return a->ticket.due < b->ticket.due;
      return a->ticket.number < b->ticket.number;
    }
  };

  // These take what they plan off *budget, the rows that the step may still
  // have.
  void PlanDecoding(absl::Time now, int* budget, BatchPlan* plan);
  void PlanPrompts(absl::Time now, int* budget, BatchPlan* plan);
  // REQUIRES: max_rows <= *budget.
  void PlanChunk(absl::Time now, Sequence* sequence, int max_rows, int* budget,
                 BatchPlan* plan);

  bool TryAdmit(Sequence* sequence, bool is_first);
  // Demotes until `sequence`, the first in turn, fits, if that can be had;
  // perhaps by letting it start at its floor.
  bool MakeRoom(Sequence* sequence, int64_t num_spare);
  void StartAtFloor(Sequence* sequence);     // REQUIRES: nothing of it was run
  int64_t Demote(const Demotion& demotion);  // returns the pages freed
  // Demotes running requests, the largest saving first, while `is_short`.
  void DemoteWhile(const std::function<bool()>& is_short);
  bool IsUnderPressure() const;

  // The position that admission promises pages up to.
  int64_t PromisedEnd(const Sequence& sequence) const;
  // Pages that admission leaves for those that grow.
  int64_t NumSpare() const;
  // Promises the decoding sequences their next position.  Returns whether one
  // was pre-empted for it.
  bool Grow();
  Sequence* FindVictim() const;
  void Preempt(Sequence* sequence);
  // Back among those that wait, without pages, to run its path from its begin.
  void Requeue(Sequence* sequence);

  // Takes the switches of its path that it has come to.
  void FollowPath(Sequence* sequence);

  const Options options_;
  PressurePolicy policy_;
  KvPool* const pool_;
  KvMemory memory_;
  uint64_t last_number_ = 0;
  uint64_t step_ = 0;
  int64_t num_blocks_owed_ = 0;  // looked up in vain, and not made up for yet
  std::set<Sequence*, ByTurn> waiting_;
  std::vector<Sequence*> running_;
  std::vector<SchedulerEvent> events_;

  // Kept between steps for their memory.
  std::vector<Sequence*> prompts_;
  std::vector<Sequence*> growing_;
};

}  // namespace strata

#endif  // CORE_SCHEDULER_H_
