#ifndef CORE_SCHEDULER_H_
#define CORE_SCHEDULER_H_

#include <cstdint>
#include <set>
#include <vector>

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
// longer but not for ever.  If the first does not fit, a later one may pass it, at most kMaxBypass times.
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
  static constexpr int kMaxLookahead = 16;  // waiting sequences looked at in a step after one did not fit

  Scheduler(const Options& options, KvPool* pool);

  // Queues a sequence in state kWaiting or kHeld (a held one waits for Release).
  // REQUIRES: PagesNeeded(request) <= pool pages.
  void Add(Sequence* sequence, absl::Time now);

  // Lets a held sequence wait for admission.  `donor`: a running sample of the same prompt and strategy whose
  // prompt is cached, or null; its whole pages of the prompt are shared at admission if it still runs then.
  void Release(Sequence* sequence, Sequence* donor);

  // Takes a sequence out, whatever its state; its pages and promises go back to the pool.  It is kEnded then.
  void Remove(Sequence* sequence);

  // Admits what fits and fills `plan`: every decoding sequence one row, then prompt chunks under the token budget, in
  // order of admission.  Allocates the pages of the rows.  `plan` is empty only if nothing runs.
  void Plan(absl::Time now, BatchPlan* plan);

  // The plan was run: its positions are cached.
  void Commit(const BatchPlan& plan);

  int num_running() const { return static_cast<int>(running_.size()); }
  int num_waiting() const { return static_cast<int>(waiting_.size()); }
  const std::vector<Sequence*>& running() const { return running_; }
};

}  // namespace strata

#endif  // CORE_SCHEDULER_H_
