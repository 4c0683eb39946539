#ifndef CORE_MODEL_HF_ROPE_H_
#define CORE_MODEL_HF_ROPE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/model/json_fields.h"

namespace strata {

// The RoPE frequencies [head_dim / 2] of a config.json: rope_theta and
// rope_scaling, or rope_parameters, of type default, linear or llama3;
// UNIMPLEMENTED for other types.
absl::StatusOr<std::vector<float>> ParseHfRope(const JsonFields& config,
                                               int head_dim);

}  // namespace strata

#endif  // CORE_MODEL_HF_ROPE_H_
