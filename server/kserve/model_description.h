#ifndef SERVER_KSERVE_MODEL_DESCRIPTION_H_
#define SERVER_KSERVE_MODEL_DESCRIPTION_H_

#include <string>

#include "server/kserve/proto/grpc_service.pb.h"

namespace strata::kserve {

// What ModelMetadata and ModelConfig answer for the model of this name.
inference::ModelMetadataResponse DescribeMetadata(const std::string& name);
inference::ModelConfig DescribeConfig(const std::string& name);

}  // namespace strata::kserve

#endif  // SERVER_KSERVE_MODEL_DESCRIPTION_H_
