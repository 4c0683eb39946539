#ifndef CORE_MODEL_HF_CONFIG_H_
#define CORE_MODEL_HF_CONFIG_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/model/model_description.h"

namespace strata {

// Reads a config.json of transformers: model_type llama, mistral, qwen2, qwen3,
// with the defaults that transformers has for absent fields.  UNIMPLEMENTED, by
// name, for what Strata does not run.  Errors begin with `path`.
absl::StatusOr<ModelDescription> ParseHfConfig(const std::string& path,
                                               std::string_view text);

// Replaces description->eos_ids by eos_token_id of a generation_config.json, if
// it has that.
absl::Status ApplyGenerationConfig(const std::string& path,
                                   std::string_view text,
                                   ModelDescription* description);

}  // namespace strata

#endif  // CORE_MODEL_HF_CONFIG_H_
