#ifndef SERVER_PROCESS_MEMORY_PLAN_H_
#define SERVER_PROCESS_MEMORY_PLAN_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/process/options.h"

namespace strata {

// Where a backend's memory goes, in the order in which it is taken.
struct MemoryPlan {
  int64_t weight_bytes = 0;
  int64_t workspace_bytes = 0;  // activations and scratch of the largest step
  int64_t logit_bytes = 0;      // of them
  int64_t kv_bytes = 0;         // whole pages
  int64_t left_bytes = 0;       // free beside all of these
};

// RESOURCE_EXHAUSTED: `what` did not fit, how much was wanted (absent: more
// than is free) and free, and `remedy`, what to change.
absl::Status OutOfMemory(absl::string_view what,
                         std::optional<int64_t> wanted_bytes,
                         int64_t free_bytes, absl::string_view remedy);

// That error if more is wanted than is free.
absl::Status CheckFits(absl::string_view what, int64_t wanted_bytes,
                       int64_t free_bytes, absl::string_view remedy);

// Whole pages of the pool that --kv_memory asks for, where `free_bytes` are
// free for it.  INVALID_ARGUMENT: not one page, or more bytes than pages can be
// numbered; RESOURCE_EXHAUSTED: it does not fit.
absl::StatusOr<int64_t> NumKvPages(const MemorySize& kv_memory,
                                   int64_t free_bytes, int64_t page_bytes);

}  // namespace strata

#endif  // SERVER_PROCESS_MEMORY_PLAN_H_
