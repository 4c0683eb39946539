#include "core/switch_requests.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/quote.h"

namespace strata {
namespace {

// The sequences that have not ended and come to another strategy.
std::vector<Sequence*> ToSwitch(std::span<LiveRequest* const> requests,
                                const SharingStrategy& strategy) {
  std::vector<Sequence*> sequences;
  for (LiveRequest* live : requests) {
    for (const auto& sequence : live->sequences) {
      if (sequence->state == Sequence::State::kEnded) continue;
      if (sequence->path.StrategyAt(sequence->max_cached) == strategy) continue;
      sequences.push_back(sequence.get());
    }
  }
  return sequences;
}

absl::Status Check(const Sequence& sequence, const SharingStrategy& strategy,
                   int label, bool recompute, int64_t num_pages,
                   const Scheduler& scheduler) {
  if (!recompute) {
    if (scheduler.CanSwitch(sequence, strategy)) return absl::OkStatus();
    const SharingStrategy& now = sequence.path.StrategyAt(sequence.max_cached);
    if (strategy.LeadersSubsetOf(now)) {
      return absl::FailedPreconditionError(absl::StrCat(
          Quote(strategy.canonical()), " rules out a planned switch of the ",
          "request that saves more pages: only with recompute"));
    }
    return absl::FailedPreconditionError(
        absl::StrCat("the leaders of ", Quote(strategy.canonical()),
                     " are not all leaders of the request's strategy, ",
                     Quote(now.canonical()), ": only with recompute"));
  }
  const int64_t needed = scheduler.PagesAfterRestart(sequence, strategy, label);
  if (needed <= num_pages) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the request needs ", needed, " pages of KV cache under ",
                   Quote(strategy.canonical()), ", but the pool has ",
                   num_pages, " (--kv_memory)"));
}

}  // namespace

absl::StatusOr<int64_t> SwitchRequests(std::span<LiveRequest* const> requests,
                                       const SharingStrategy& strategy,
                                       int label, bool recompute,
                                       int64_t num_pages,
                                       Scheduler* scheduler) {
  const std::vector<Sequence*> sequences = ToSwitch(requests, strategy);
  for (const Sequence* sequence : sequences) {
    STRATA_RETURN_IF_ERROR(
        Check(*sequence, strategy, label, recompute, num_pages, *scheduler));
  }
  int64_t num_freed = 0;
  for (Sequence* sequence : sequences) {
    num_freed += recompute ? scheduler->Restart(sequence, strategy, label)
                           : scheduler->Switch(sequence, strategy, label,
                                               SwitchCause::kClient);
  }
  return num_freed;
}

}  // namespace strata
