#ifndef SERVER_SAMPLING_CHECK_H_
#define SERVER_SAMPLING_CHECK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "core/request.h"
#include "core/text/tokenizer.h"

namespace strata {

inline constexpr int kMaxSequences = 128;
inline constexpr size_t kMaxStopStrings = 16;
inline constexpr size_t kMaxStopBytes = 256;

// The ranges of messages Sampling and Stopping in proto/strata.proto, for every
// face.  INVALID_ARGUMENT names the field, its value and what is allowed.
// What means the same is made the same: lists of ids sorted, without doubles.
absl::Status CheckSampling(int vocab_size, Sampling* sampling);

// `tokenizer` may be null: stop strings are FAILED_PRECONDITION then.
// `max_tokens`: what the client set; FitRequest resolves the field itself.
absl::Status CheckStopping(int vocab_size, const Tokenizer* tokenizer,
                           std::optional<uint32_t> max_tokens,
                           Stopping* stopping);

// That some token may be sampled before min_tokens are there: not if only
// tokens are allowed that end the text.  `eos_ids`: those of the model.
// REQUIRES: both were checked.
absl::Status CheckSomeTokenRemains(const Sampling& sampling,
                                   const Stopping& stopping,
                                   const std::vector<int32_t>& eos_ids);

absl::Status CheckNumSequences(uint32_t num_sequences);
absl::Status CheckTopLogprobs(uint32_t num_top_logprobs);

// For clients that gave none.
uint64_t RandomSeed();

}  // namespace strata

#endif  // SERVER_SAMPLING_CHECK_H_
