#ifndef SERVER_KSERVE_SAMPLING_PARAMETERS_H_
#define SERVER_KSERVE_SAMPLING_PARAMETERS_H_

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/strata.pb.h"

namespace strata::kserve {

// The parameters of vLLM's SamplingParams that Strata has, under their names.

// The object that the text is.  INVALID_ARGUMENT: it is none, too long, or
// nests deeper than lists of simple values.
absl::StatusOr<nlohmann::json> ParseSamplingParameters(std::string_view text);

// Sets what the object has; null is as not there, and a number may stand in a
// string, as Triton's clients write it.  INVALID_ARGUMENT names an unknown
// parameter, or one of another type; the ranges are for ToRequest to check.
absl::Status SetSamplingParameters(const nlohmann::json& parameters,
                                   v1::GenerateRequest* request);

}  // namespace strata::kserve

#endif  // SERVER_KSERVE_SAMPLING_PARAMETERS_H_
