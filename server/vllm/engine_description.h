#ifndef SERVER_VLLM_ENGINE_DESCRIPTION_H_
#define SERVER_VLLM_ENGINE_DESCRIPTION_H_

#include <string>

#include "server/serving_state.h"
#include "server/vllm/proto/vllm_engine.pb.h"

namespace strata::vllm {

// What a gateway may ask about the engine beyond what the model says.
struct EngineFacts {
  std::string model_path;  // --model
  int max_sequences = 0;   // that run at once
};

::vllm::grpc::engine::GetModelInfoResponse DescribeModel(
    const ServedModel& model, const EngineFacts& facts);

// All but the times.
::vllm::grpc::engine::GetServerInfoResponse DescribeServer(
    const ServedModel& model, const EngineFacts& facts);

// As of now.
::vllm::grpc::engine::GetLoadsResponse DescribeLoads(const ServedModel& model,
                                                     const EngineFacts& facts);

}  // namespace strata::vllm

#endif  // SERVER_VLLM_ENGINE_DESCRIPTION_H_
