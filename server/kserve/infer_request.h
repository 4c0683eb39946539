#ifndef SERVER_KSERVE_INFER_REQUEST_H_
#define SERVER_KSERVE_INFER_REQUEST_H_

#include <array>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/strata.pb.h"
#include "server/kserve/proto/grpc_service.pb.h"
#include "server/kserve/tensors.h"

namespace strata::kserve {

// The version of the served model; clients may leave theirs empty.
inline constexpr char kModelVersion[] = "1";

// A ModelInferRequest: as a request of the native face, which is validated like
// all of those, and what is to be answered.
struct InferRequest {
  v1::GenerateRequest generate;
  bool is_streamed = false;   // a response for what every step gave, else one
  bool echoes_input = false;  // before the text
  bool has_text = true;       // among the outputs
  std::array<bool, kNumExtras> extras = {};
  // After the last output comes a response without any, marked as final.
  bool has_empty_final = false;
  absl::Duration timeout = absl::InfiniteDuration();  // since it came
};

// INVALID_ARGUMENT and UNIMPLEMENTED as InferInputs::Parse, also for unknown
// parameters and outputs; NOT_FOUND for another version.
absl::StatusOr<InferRequest> ToInferRequest(
    const inference::ModelInferRequest& message);

// NOT_FOUND unless it is empty or kModelVersion.
absl::Status CheckModelVersion(const std::string& version);

}  // namespace strata::kserve

#endif  // SERVER_KSERVE_INFER_REQUEST_H_
