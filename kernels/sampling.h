#ifndef KERNELS_SAMPLING_H_
#define KERNELS_SAMPLING_H_

#include <array>
#include <cstdint>
#include <span>

namespace strata {

inline constexpr int kMaxTopLogprobs = 20;

struct TokenCount {
  int32_t token;
  int32_t generated;  // times it was generated; 0: it is in the prompt only
};

struct TokenBias {
  int32_t token;
  float bias;  // added to the logit; -infinity bans
};

// How one row of logits becomes a token.  The arrays live until
// Backend::Submit returns.
//
// Order (proto/semantics.md 13): repetition penalty (tokens in `history`: a
// positive logit is divided by it, another multiplied), presence and frequency
// (generated ones), bias, banned, allowed, temperature, top_k, top_p, min_p.
// Log-probabilities are the log-softmax of the logits before all of these.
struct SampleRow {
  float temperature = 1.0f;  // 0: the largest logit, the lowest id among equals
  float top_p = 1.0f;  // (0, 1]: the smallest set of best tokens with this
                       // probability or more
  float min_p =
      0.0f;  // [0, 1]: tokens with at least min_p * the best's probability
  int32_t top_k = 0;  // 0: all.  Among equal logits the lower id is better
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  // The random number is a function of these three alone (counter-based), so it
  // does not depend on the batch.
  uint64_t seed = 0;
  uint32_t index = 0;     // of the sample among n
  uint32_t position = 0;  // of the token to be sampled
  std::span<const TokenCount> history = {};  // distinct tokens; empty if no penalty is set
  std::span<const TokenBias> bias = {};
  std::span<const int32_t> banned = {};   // e.g. end tokens below min_tokens
  std::span<const int32_t> allowed = {};  // empty: all
  int32_t forced_token = -1;         // >= 0: the choice is made (Score), only
                                     // log-probabilities are wanted
  bool wants_logprobs = false;
  int32_t num_top = 0;  // best tokens to report, at most kMaxTopLogprobs; needs
                        // wants_logprobs
};

struct TokenLogprob {
  int32_t token;
  float logprob;
};

struct SampledToken {
  int32_t token = 0;
  float logprob = 0.0f;  // of token, where wanted
  int32_t num_top = 0;
  std::array<TokenLogprob, kMaxTopLogprobs>
      top;             // best first; among equals the lower id
  bool finite = true;  // false: a logit was NaN or all were -infinity; token is
                       // meaningless
};

}  // namespace strata

#endif  // KERNELS_SAMPLING_H_
