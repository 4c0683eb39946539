#ifndef CORE_FIT_REQUEST_H_
#define CORE_FIT_REQUEST_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "core/request.h"

namespace strata {

// What bounds every request, fixed when the server starts.
struct EngineLimits {
  int vocab_size = 0;
  int max_model_len = 0;  // positions of prompt and generated tokens together
  int64_t num_pages = 0;  // of the pool
  int page_tokens = 0;
  bool optimistic = false;  // admission for the prompt only: max_tokens, where
                            // unset, is not bounded by the pool's quarter
};

// Resolves request->stopping.max_tokens from what the client set, and refuses
// what can never run, with the numbers (contract: semantics 16): unset, it
// becomes what context and pool leave, under reserve admission at most a
// quarter of the pool or the prompt and 1,024 tokens, whichever is larger and
// fits; set, it is cut to the context, and INVALID_ARGUMENT if the pool can
// never hold it under the strategy, nor under its floor.  A prompt of
// max_model_len or more is INVALID_ARGUMENT, as is one that the pool cannot
// hold.  Score needs its tokens to fit the context and the pool.
absl::Status FitRequest(const EngineLimits& limits,
                        std::optional<uint32_t> max_tokens, Request* request);

// Pages that one sequence of the request allocates until its end, along its
// planned switches: one of each leader for each block begun.
int64_t PagesNeeded(const Request& request, int page_tokens);

}  // namespace strata

#endif  // CORE_FIT_REQUEST_H_
