#ifndef CORE_SWITCH_REQUESTS_H_
#define CORE_SWITCH_REQUESTS_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "core/live_request.h"
#include "core/scheduler.h"
#include "core/sharing_strategy.h"

namespace strata {

// Switches all sequences of the requests to `strategy`, or none.  Returns the
// pages that have become available.  FAILED_PRECONDITION: `strategy` has a
// leader that a sequence lacks, and not `recompute`; or with it, `num_pages`,
// the pool's, could never hold a sequence.  The engine thread's.
absl::StatusOr<int64_t> SwitchRequests(std::span<LiveRequest* const> requests,
                                       const SharingStrategy& strategy,
                                       int label, bool recompute,
                                       int64_t num_pages, Scheduler* scheduler);

}  // namespace strata

#endif  // CORE_SWITCH_REQUESTS_H_
