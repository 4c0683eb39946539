#ifndef CORE_SCHEDULER_H_
#define CORE_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "core/batch_plan.h"
#include "core/kv_pool.h"
#include "core/sequence.h"

namespace strata {

// Decides which sequences run, and how many positions of each, in every step: continuous batching with chunked prefill
// against what each sequence really holds under its strategy.
//
//   (Add | Remove | (Plan Commit))*
//
// Admission is all or nothing: a sequence runs once the pool can promise the pages it needs until its end,
//   leaders * ceil(MaxPositions / page_tokens), less what it shares with another sample;
// so a running one never waits for memory.  Order: by arrival + priority * kPriorityDelay, so that a low priority waits
// longer but not for ever.  If one does not fit, later ones may pass it, at most kMaxBypass times; then nothing does
// until it is admitted.
//
// A step costs O(running): what waits beyond kMaxLookahead is not looked at.  In steady state it allocates no memory.
//
// Does not own sequences.  Knows no backend, gRPC or clock.  Not thread-safe: the engine thread's.
class Scheduler {
 public:
  struct Options {
    int max_sequences = 64;        // running at once
    int max_batched_tokens = 512;  // rows of a step
    int page_tokens = 16;          // positions of a page
  };
  static constexpr absl::Duration kPriorityDelay = absl::Seconds(10);
  static constexpr int kMaxPriority = 100;  // beyond +-this all are alike
  static constexpr int kMaxBypass = 16;
  static constexpr int kOldestPromptShare = 4;  // one part in so many of the rows that prompts have
  static constexpr int kMaxLookahead = 16;  // waiting sequences looked at after one that does not fit

  // `pool` outlives this.  REQUIRES: all options > 0.
  Scheduler(const Options& options, KvPool* pool);

  // Queues a sequence in state kWaiting or kHeld (a held one waits for Release).
  // REQUIRES: PagesNeeded(request) <= pool pages.  One with nothing to run must be removed before Plan.
  void Add(Sequence* sequence, absl::Time now);

  // Lets a held sequence wait for admission.  `donor`: a running sample of the same request whose prompt is
  // cached, or null; its whole pages of the prompt are shared at admission if it still runs, under the same strategy.
  // The place in the order is that of Add.
  void Release(Sequence* sequence, Sequence* donor);

  // Takes a sequence out, whatever its state; its pages and promises go back to the pool.  It is kEnded then.
  // No effect on one that is.
  void Remove(Sequence* sequence);

  // Admits what fits and fills `plan`: every decoding sequence one row, then prompt chunks under the token budget, those
  // with the least left first, so that a short request does not wait for a long prompt to end; but the prompt admitted
  // first has its share in every step, so that it does not starve.  Allocates the pages of the rows.  `plan` is empty
  // only if nothing runs.
  // (Decoding ones are never more than the budget: each came to decode by a row that they left over.)
  void Plan(absl::Time now, BatchPlan* plan);

  // Admits one sequence, the first in turn that fits, and returns it; null if there is none.  Plan does this too.
  Sequence* AdmitNext();

  // The plan was run: its positions are cached.
  void Commit(const BatchPlan& plan);

  int num_running() const { return static_cast<int>(running_.size()); }
  int num_waiting() const { return static_cast<int>(waiting_.size()); }
  const std::vector<Sequence*>& running() const { return running_; }  // in order of admission

 private:
  struct ByTurn {
    bool operator()(const Sequence* a, const Sequence* b) const {
      if (a->ticket.due != b->ticket.due) return a->ticket.due < b->ticket.due;
      return a->ticket.number < b->ticket.number;
    }
  };

  // These take what they plan off *budget, the rows that the step may still have.
  void PlanDecoding(absl::Time now, int* budget, BatchPlan* plan);
  void PlanPrompts(absl::Time now, int* budget, BatchPlan* plan);
  // REQUIRES: max_rows <= *budget.
  void PlanChunk(absl::Time now, Sequence* sequence, int max_rows, int* budget, BatchPlan* plan);

  // Promises it the pages until its end and makes it run, or changes nothing and returns false.
  bool TryAdmit(Sequence* sequence);
  const Sequence* FindDonor(const Sequence& sequence) const;
  void ShareBlocks(const Sequence& donor, int num_blocks, Sequence* sequence);
  void AllocateBlock(Sequence* sequence);
  void UpdateHeld(Sequence* sequence) const;

  const Options options_;
  KvPool* const pool_;
  uint64_t last_number_ = 0;
  std::set<Sequence*, ByTurn> waiting_;
  std::vector<Sequence*> running_;
  absl::flat_hash_map<uint64_t, Sequence*> donors_;  // running ones named by Release, by number

  // Kept between steps for their memory.
  std::vector<Sequence*> prompts_;
  std::vector<KvPool::PageId> block_;
};

}  // namespace strata

#endif  // CORE_SCHEDULER_H_
