#ifndef CORE_TEXT_TOKENIZER_JSON_H_
#define CORE_TEXT_TOKENIZER_JSON_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "core/text/tokenizer_spec.h"

namespace strata {

// Reads the tokenizer of a Hugging Face directory: the texts of its
// tokenizer.json and of its tokenizer_config.json ("" where it has none).
// Whether a BOS is added is what transformers' fast tokenizers do with these
// files.
//
// INVALID_ARGUMENT for a malformed file; UNIMPLEMENTED, by name, for what is
// not byte-level BPE with one of the known pre-tokenizers.
absl::StatusOr<TokenizerSpec> ParseTokenizerJson(
    std::string_view tokenizer_json, std::string_view tokenizer_config_json);

}  // namespace strata

#endif  // CORE_TEXT_TOKENIZER_JSON_H_
