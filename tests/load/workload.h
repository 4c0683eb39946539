#ifndef TESTS_LOAD_WORKLOAD_H_
#define TESTS_LOAD_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "proto/strata.pb.h"

namespace strata {

// A trace to replay, as the flags of the same names say.
struct TraceOptions {
  std::string path = "";  // empty: calls are drawn instead
  enum class Format { kMooncake, kShareGpt };
  Format format = Format::kMooncake;
  double time_scale = 1;    // Mooncake: of the times between calls
  double length_scale = 1;  // Mooncake: of lengths and blocks
  int turns = 1;            // ShareGPT: at most, of a conversation

  // INVALID_ARGUMENT names the flag and what it allows.  REQUIRES: flags are
  // parsed.
  static absl::StatusOr<TraceOptions> FromFlags();
};

// A call of a trace, before it is fitted to a model's context.
struct TracedCall {
  double at_s = 0;               // 0 in ShareGPT, which has no times
  std::vector<uint32_t> tokens;  // at most the context; see prompt_tokens
  int64_t prompt_tokens = 0;     // before that cut
  int64_t output_tokens = 0;
};

// Reads the trace and makes prompts of it, at most `most` calls in their order;
// 0: all.  ShareGPT's texts are tokenized by the server.  INVALID_ARGUMENT,
// NOT_FOUND name the file and what is wrong; FAILED_PRECONDITION: the model has
// no tokenizer.
absl::StatusOr<std::vector<TracedCall>> ReadTrace(
    const TraceOptions& options, int most, uint64_t seed,
    const v1::GetModelResponse& model, const Connection& connection);

}  // namespace strata

#endif  // TESTS_LOAD_WORKLOAD_H_
