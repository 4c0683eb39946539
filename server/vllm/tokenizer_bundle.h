#ifndef SERVER_VLLM_TOKENIZER_BUNDLE_H_
#define SERVER_VLLM_TOKENIZER_BUNDLE_H_

#include <string>

#include "absl/status/statusor.h"

namespace strata::vllm {

// What a gateway needs to make the model's tokenizer.
struct TokenizerBundle {
  std::string zip;
  std::string sha256;  // of it, in hex
};

// Of the files of a model's folder that SMG's tokenizer reads: tokenizer.json,
// config.json, *.jinja and others.  Reads them all.  UNIMPLEMENTED: `model` is
// a GGUF file, which has none; FAILED_PRECONDITION: there are none, or too many
// bytes of them; INTERNAL: one cannot be read.
absl::StatusOr<TokenizerBundle> ReadTokenizerBundle(const std::string& model);

}  // namespace strata::vllm

#endif  // SERVER_VLLM_TOKENIZER_BUNDLE_H_
