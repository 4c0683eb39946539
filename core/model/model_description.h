#ifndef CORE_MODEL_MODEL_DESCRIPTION_H_
#define CORE_MODEL_MODEL_DESCRIPTION_H_

#include <cstdint>
#include <vector>

#include "core/model/model_config.h"

namespace strata {

// What a model's configuration says, apart from its weights.
struct ModelDescription {
  ModelConfig config;  // valid
  bool has_qkv_bias = false;
  bool has_output_bias = false;
  bool has_qk_norm = false;
  std::vector<int32_t> eos_ids;  // distinct, each below config.vocab_size
};

}  // namespace strata

#endif  // CORE_MODEL_MODEL_DESCRIPTION_H_
