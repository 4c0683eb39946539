#ifndef CORE_MODEL_HF_TOKENIZER_H_
#define CORE_MODEL_HF_TOKENIZER_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/text/tokenizer_spec.h"

namespace strata {

// Reads the tokenizer of a Hugging Face directory: tokenizer.json,
// tokenizer_config.json and chat_template.jinja, which replaces the template of
// the former.  Absent if there is no tokenizer.json. Added tokens that the
// model has no embedding for (id >= vocab_size) are left out.
absl::StatusOr<std::optional<TokenizerSpec>> ReadHfTokenizer(
    const std::string& directory, int vocab_size);

}  // namespace strata

#endif  // CORE_MODEL_HF_TOKENIZER_H_
