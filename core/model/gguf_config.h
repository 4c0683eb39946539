#ifndef CORE_MODEL_GGUF_CONFIG_H_
#define CORE_MODEL_GGUF_CONFIG_H_

#include "absl/status/statusor.h"
#include "core/model/gguf.h"
#include "core/model/model_description.h"

namespace strata {

// Reads the metadata of a GGUF file as llama.cpp writes it:
// general.architecture llama (Mistral's files too), qwen2, qwen3.
// UNIMPLEMENTED, by name, for what Strata does not run.  Errors begin with the
// file's path. eos_ids stays empty: the tokenizer's metadata has them
// (gguf_tokenizer.h).
absl::StatusOr<ModelDescription> ParseGgufConfig(const Gguf& gguf);

}  // namespace strata

#endif  // CORE_MODEL_GGUF_CONFIG_H_
