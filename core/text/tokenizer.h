#ifndef CORE_TEXT_TOKENIZER_H_
#define CORE_TEXT_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/text/tokenizer_spec.h"

namespace strata {

// Byte-level BPE: text to token ids and back, with the ids of Hugging Face's tokenizers.
//
// Immutable and thread-safe.
class Tokenizer {
 public:
  // INVALID_ARGUMENT for a specification that contradicts itself; the text says where.
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Create(TokenizerSpec spec);
  virtual ~Tokenizer() = default;

  struct EncodeOptions {
    bool add_bos = false;        // where the model's tokenizer says so: pass adds_bos()
    bool parse_special = false;  // control tokens in the text become their ids; else they are plain text
  };
  // Any bytes are allowed; what is not UTF-8 is encoded byte by byte.
  virtual std::vector<int32_t> Encode(std::string_view text, EncodeOptions options) const = 0;

  // The bytes of one token; "" for ids that have none and, if `skip_special`, for control tokens.
  // A character may be split over several tokens.
  virtual std::string_view Bytes(int32_t id, bool skip_special) const = 0;

  // All of them joined, what is not UTF-8 replaced by U+FFFD.
  std::string Decode(const std::vector<int32_t>& ids, bool skip_special) const;

  virtual int32_t vocab_size() const = 0;  // ids are below
  virtual bool adds_bos() const = 0;
  virtual const TokenizerSpec& spec() const = 0;
};

}  // namespace strata

#endif  // CORE_TEXT_TOKENIZER_H_
