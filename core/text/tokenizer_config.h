#ifndef CORE_TEXT_TOKENIZER_CONFIG_H_
#define CORE_TEXT_TOKENIZER_CONFIG_H_

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "core/text/tokenizer_spec.h"

namespace strata {

// Makes `token` one of spec->added, and its content the spelling of its id; the
// flags replace those that it had.  INVALID_ARGUMENT if the id is another
// token's.
absl::Status PutAddedToken(const AddedToken& token, TokenizerSpec* spec);

// Reads one object of `added_tokens`, except for its id.
absl::Status ParseAddedToken(const nlohmann::json& object, AddedToken* token);

// Applies a tokenizer_config.json to what its tokenizer.json says, as
// transformers' PreTrainedTokenizerFast and its subclasses do when they load
// both.
absl::Status ApplyTokenizerConfig(const nlohmann::json& config,
                                  TokenizerSpec* spec);

}  // namespace strata

#endif  // CORE_TEXT_TOKENIZER_CONFIG_H_
