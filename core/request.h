#ifndef CORE_REQUEST_H_
#define CORE_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/sharing_strategy.h"
#include "kernels/sampling.h"

namespace strata {

using RequestId =
    uint64_t;  // the server's own, unique within a process, from 1

struct Sampling {
  float temperature = 1.0f;
  float top_p = 1.0f;
  float min_p = 0.0f;
  int32_t top_k = 0;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  uint64_t seed = 0;  // drawn by the server where the client gave none
  std::vector<TokenBias> logit_bias;
  std::vector<int32_t> allowed_tokens;  // empty: all

  bool has_penalties() const {
    return repetition_penalty != 1.0f || presence_penalty != 0.0f ||
           frequency_penalty != 0.0f;
  }
};

struct Stopping {
  int32_t max_tokens = 0;  // > 0 for Generate: resolved by FitRequest
  int32_t min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_tokens;
  bool ignore_eos = false;
  bool include_stop = false;
};

// A switch that the client plans: prompt and first `after_generated` generated
// tokens are run, hence cached, under the strategy before, later ones under
// this.
struct PlannedSwitch {
  int32_t after_generated = 0;
  SharingStrategy strategy;
  int strategy_label = 0;
};

// What a client asks for: validated (server/request.h, core/fit_request.h),
// immutable from then on.
struct Request {
  enum class Kind { kGenerate, kScore };
  Kind kind = Kind::kGenerate;
  std::string
      label;  // the client's request_id, may be empty, need not be unique
  std::vector<int32_t>
      prompt;  // not empty, ids within the vocabulary; Score: the tokens
  SharingStrategy strategy;
  int strategy_label = 0;  // StrategyRegistry::LabelOf(strategy)
  // What the server may switch it to under memory pressure; absent: nothing.
  // Leaders are a subset of `strategy`'s.
  std::optional<SharingStrategy> floor;
  int floor_label = 0;
  // after_generated rises; leaders are a subset of those before.
  std::vector<PlannedSwitch> switches;
  Sampling sampling;
  Stopping stopping;
  int num_sequences = 1;
  std::optional<int> num_top_logprobs;  // absent: no log-probabilities
  int32_t priority = 0;                 // lower runs first
  std::string cache_salt;  // prefixes are shared only between equal ones
  bool bypass_prefix_cache = false;  // neither reads nor writes it
  bool tokens_only = false;          // no text
  absl::Time deadline = absl::InfiniteFuture();

  explicit Request(SharingStrategy s) : strategy(std::move(s)) {}

  // Positions that are run for one sequence, from its first to its end: the
  // last token is never run.
  int64_t MaxPositions() const {
    return static_cast<int64_t>(prompt.size()) - 1 +
           (kind == Kind::kGenerate ? stopping.max_tokens : 0);
  }
};

}  // namespace strata

#endif  // CORE_REQUEST_H_
