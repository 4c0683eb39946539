#include "server/sampling_check.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/quote.h"
#include "kernels/sampling.h"
#include "server/prompt.h"

namespace strata {
namespace {

// Below this, exp((logit - best) / temperature) is 0 for any two logits that
// a model tells apart: sampling is greedy, without the overflow.
constexpr float kSmallestTemperature = 1e-5f;

template <typename Number>
absl::Status OutOfRange(const std::string& field, Number value,
                        const std::string& allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", must be ", allowed));
}

// `in_range` is false for NaN when it is written as a comparison.
absl::Status CheckRange(const std::string& field, float value, bool in_range,
                        const std::string& allowed) {
  if (in_range && std::isfinite(value)) return absl::OkStatus();
  return OutOfRange(field, value, allowed);
}

void SortAndDeduplicate(std::vector<int32_t>* ids) {
  std::sort(ids->begin(), ids->end());
  ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
}

absl::Status CheckBias(int vocab_size, std::vector<TokenBias>* bias) {
  for (const TokenBias& entry : *bias) {
    STRATA_RETURN_IF_ERROR(
        CheckTokenIds("logit_bias", {entry.token}, vocab_size));
    STRATA_RETURN_IF_ERROR(
        CheckRange(absl::StrCat("logit_bias of token ", entry.token),
                   entry.bias, true, "finite"));
  }
  const auto by_token = [](const TokenBias& a, const TokenBias& b) {
    return a.token < b.token;
  };
  std::sort(bias->begin(), bias->end(), by_token);
  return absl::OkStatus();
}

absl::Status CheckStopStrings(const std::vector<std::string>& stop) {
  if (stop.size() > kMaxStopStrings) {
    return absl::InvalidArgumentError(
        absl::StrCat("stop has ", stop.size(), " strings, at most ",
                     kMaxStopStrings, " are allowed"));
  }
  for (const std::string& text : stop) {
    if (text.empty()) {
      return absl::InvalidArgumentError("stop has an empty string");
    }
    if (text.size() > kMaxStopBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("stop string ", Quote(text), " has ", text.size(),
                       " bytes, at most ", kMaxStopBytes, " are allowed"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSampling(int vocab_size, Sampling* sampling) {
  Sampling& s = *sampling;
  STRATA_RETURN_IF_ERROR(CheckRange("temperature", s.temperature,
                                    s.temperature >= 0, "0 or more, finite"));
  STRATA_RETURN_IF_ERROR(CheckRange(
      "top_p", s.top_p, s.top_p > 0 && s.top_p <= 1, "above 0, at most 1"));
  STRATA_RETURN_IF_ERROR(CheckRange(
      "min_p", s.min_p, s.min_p >= 0 && s.min_p <= 1, "from 0 to 1"));
  STRATA_RETURN_IF_ERROR(CheckRange("repetition_penalty", s.repetition_penalty,
                                    s.repetition_penalty > 0,
                                    "above 0, finite"));
  STRATA_RETURN_IF_ERROR(CheckRange("presence_penalty", s.presence_penalty,
                                    std::abs(s.presence_penalty) <= 2,
                                    "from -2 to 2"));
  STRATA_RETURN_IF_ERROR(CheckRange("frequency_penalty", s.frequency_penalty,
                                    std::abs(s.frequency_penalty) <= 2,
                                    "from -2 to 2"));
  STRATA_RETURN_IF_ERROR(CheckBias(vocab_size, &s.logit_bias));
  STRATA_RETURN_IF_ERROR(
      CheckTokenIds("allowed_token_ids", s.allowed_tokens, vocab_size));
  SortAndDeduplicate(&s.allowed_tokens);
  if (s.temperature < kSmallestTemperature) s.temperature = 0;
  // Above 2^31 it is negative here.
  if (s.top_k < 0 || s.top_k >= vocab_size) s.top_k = 0;
  return absl::OkStatus();
}

absl::Status CheckStopping(int vocab_size, const Tokenizer* tokenizer,
                           std::optional<uint32_t> max_tokens,
                           Stopping* stopping) {
  if (max_tokens == 0u) {
    return absl::InvalidArgumentError("max_tokens is 0, must be 1 or more");
  }
  // Above 2^31 min_tokens is negative here.
  const auto min_tokens = static_cast<uint32_t>(stopping->min_tokens);
  if (max_tokens.has_value() && min_tokens > *max_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("min_tokens is ", min_tokens,
                     ", must be at most max_tokens, ", *max_tokens));
  }
  stopping->min_tokens =
      static_cast<int32_t>(std::min<uint32_t>(min_tokens, INT32_MAX));
  STRATA_RETURN_IF_ERROR(CheckStopStrings(stopping->stop));
  if (!stopping->stop.empty() && tokenizer == nullptr) {
    return absl::FailedPreconditionError(
        "the model has no tokenizer: use stop_token_ids instead of stop");
  }
  STRATA_RETURN_IF_ERROR(
      CheckTokenIds("stop_token_ids", stopping->stop_tokens, vocab_size));
  SortAndDeduplicate(&stopping->stop_tokens);
  return absl::OkStatus();
}

absl::Status CheckSomeTokenRemains(const Sampling& sampling,
                                   const Stopping& stopping,
                                   const std::vector<int32_t>& eos_ids) {
  if (sampling.allowed_tokens.empty() || stopping.min_tokens == 0) {
    return absl::OkStatus();
  }
  // Sorted by CheckStopping: there can be as many as the vocabulary has, and as
  // many allowed tokens.
  const std::vector<int32_t>& stops = stopping.stop_tokens;
  const auto ends = [&](int32_t token) {
    if (std::binary_search(stops.begin(), stops.end(), token)) return true;
    return !stopping.ignore_eos &&
           std::find(eos_ids.begin(), eos_ids.end(), token) != eos_ids.end();
  };
  if (!std::all_of(sampling.allowed_tokens.begin(),
                   sampling.allowed_tokens.end(), ends)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "min_tokens is ", stopping.min_tokens,
      ", but all allowed_token_ids end the text: allow one that does not"));
}

absl::Status CheckNumSequences(uint32_t num_sequences) {
  if (num_sequences <= kMaxSequences) return absl::OkStatus();
  return OutOfRange("num_sequences", num_sequences,
                    absl::StrCat("at most ", kMaxSequences));
}

absl::Status CheckTopLogprobs(uint32_t num_top_logprobs) {
  if (num_top_logprobs <= kMaxTopLogprobs) return absl::OkStatus();
  return OutOfRange("top_logprobs", num_top_logprobs,
                    absl::StrCat("at most ", kMaxTopLogprobs));
}

uint64_t RandomSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace strata
