#ifndef CORE_MODEL_GGUF_TOKENIZER_H_
#define CORE_MODEL_GGUF_TOKENIZER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/gguf_metadata.h"
#include "core/text/tokenizer_spec.h"

namespace strata {

// The tokenizer in a GGUF file's metadata (tokenizer.ggml.*); absent if the
// file has none.  UNIMPLEMENTED, by name, for anything but byte-level BPE
// ("gpt2") and for unknown pre-tokenizers.
absl::StatusOr<std::optional<TokenizerSpec>> ParseGgufTokenizer(
    const GgufMetadata& metadata, int vocab_size);

// The ids that end a text: those named by the metadata (eos, eot, eom), and the
// token by which the chat template ends a turn (<|im_end|>, <|eot_id|>).
absl::StatusOr<std::vector<int32_t>> ParseGgufEosIds(
    const GgufMetadata& metadata, int vocab_size,
    const std::optional<TokenizerSpec>& tokenizer);

}  // namespace strata

#endif  // CORE_MODEL_GGUF_TOKENIZER_H_
