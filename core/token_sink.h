#ifndef CORE_TOKEN_SINK_H_
#define CORE_TOKEN_SINK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "kernels/sampling.h"

namespace strata {

enum class FinishReason { kStop, kLength, kAborted };

// A change of strategy that a sequence went through.
struct SwitchRecord {
  int after_generated = 0;    // generated tokens run under the strategy before
  std::string strategy = {};  // canonical, from there on
  int64_t freed_bytes = 0;
};

// What one sequence of a request cost.
struct Usage {
  int prompt_tokens = 0;
  int cached_tokens =
      0;  // of the prompt, not run but taken from pages that were there
  int generated_tokens = 0;
  int64_t kv_bytes = 0;       // held at the largest
  int64_t kv_bytes_full = 0;  // what it would have been under `full`
  std::string strategy = {};  // canonical, of the one it ended with
  std::vector<SwitchRecord> switches = {};  // in order
  int preemptions = 0;
  double queue_seconds = 0;
  double prefill_seconds = 0;  // first scheduled to first token
  double decode_seconds = 0;
};

struct SequenceEnd {
  FinishReason reason = FinishReason::kStop;
  std::string matched_stop = {};
  Usage usage = {};
};

// What one step gave one sequence of a request.
struct SequenceDelta {
  int index = 0;
  std::string text = {};  // whole UTF-8 characters; may be empty
  // One for a step, which needs no memory of its own; none for an end without
  // token; many of Score.
  absl::InlinedVector<int32_t, 1> tokens = {};
  // One for each of `tokens` (Score: of the scored tokens), where asked for.
  std::vector<SampledToken> logprobs = {};
  std::optional<SequenceEnd> end = {};  // the last delta of this index
};

// Where a request's results go.  The engine thread calls it; calls must not
// block.  After OnEnd nothing is called.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  virtual void OnDelta(SequenceDelta delta) = 0;
  // Exactly once, last.  OK: every index had its `end`; else what failed the
  // request as a whole.
  virtual void OnEnd(absl::Status status) = 0;
};

}  // namespace strata

#endif  // CORE_TOKEN_SINK_H_
