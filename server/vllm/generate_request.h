#ifndef SERVER_VLLM_GENERATE_REQUEST_H_
#define SERVER_VLLM_GENERATE_REQUEST_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/strategy_registry.h"
#include "proto/strata.pb.h"
#include "server/vllm/proto/vllm_engine.pb.h"
#include "server/vllm/request_metadata.h"

namespace strata::vllm {

// A GenerateRequest: as a request of the native face, which is validated like
// all of those, and what is to be answered.
struct EngineRequest {
  v1::GenerateRequest generate;
  bool is_streamed = false;  // a chunk for what every step gave
  // Absent: no log-probabilities of the prompt.
  std::optional<uint32_t> num_prompt_logprobs;
};

// UNIMPLEMENTED names what Strata has not; INVALID_ARGUMENT: no input, or a
// field with a range of its own in this face.  Other ranges are for ToRequest
// to check.
absl::StatusOr<EngineRequest> ToEngineRequest(
    const ::vllm::grpc::engine::GenerateRequest& message,
    const RequestMetadata& metadata);

// The errors that ToRequest would give, with the names of the metadata.
absl::Status CheckStrategy(const StrategyRegistry& registry,
                           const v1::Strategy& strategy);

}  // namespace strata::vllm

#endif  // SERVER_VLLM_GENERATE_REQUEST_H_
