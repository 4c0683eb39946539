#ifndef CORE_TEXT_TOKENIZER_H_
#define CORE_TEXT_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/text/added_tokens.h"
#include "core/text/bpe_merge.h"
#include "core/text/marked_text.h"
#include "core/text/pre_tokenizer.h"
#include "core/text/tokenizer_spec.h"

namespace strata {

// Byte-level BPE: text to token ids and back, with the ids of Hugging Face's
// tokenizers.
//
// Immutable and thread-safe.
class Tokenizer final {
 public:
  // INVALID_ARGUMENT for a specification that contradicts itself; the text says
  // where.
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Create(
      TokenizerSpec spec);

  struct EncodeOptions {
    bool add_bos =
        false;  // where the model's tokenizer says so: pass adds_bos()
    bool parse_special = false;  // control tokens in the text become their ids;
                                 // else they are plain text
  };
  // Any bytes are allowed; what is not UTF-8 is encoded byte by byte, and a
  // byte that has no token is left out.  O(n log n).
  std::vector<int32_t> Encode(std::string_view text,
                              EncodeOptions options) const;

  // The ids of the whole text, without a BOS, where only control tokens outside
  // of the plain ranges become their ids.
  std::vector<int32_t> Encode(const MarkedText& text) const;

  // The bytes of one token; "" for ids that have none and, if `skip_special`,
  // for control tokens.  A character may be split over several tokens.
  std::string_view Bytes(int32_t id, bool skip_special) const;

  // All of them joined, what is not UTF-8 replaced by U+FFFD.
  std::string Decode(const std::vector<int32_t>& ids, bool skip_special) const;

  int32_t vocab_size() const {
    return static_cast<int32_t>(bytes_.size());
  }  // ids are below
  bool adds_bos() const { return spec_.add_bos; }
  const TokenizerSpec& spec() const { return spec_; }

 private:
  using Ids = std::vector<int32_t>;

  explicit Tokenizer(TokenizerSpec spec);
  absl::Status AddBytes();
  absl::Status AddMerges();
  void AddWholeWords();

  // Text between added tokens, normalised.  `plain`: no control token may come
  // out of merging.
  void EncodeWords(std::string_view text, bool plain, Ids* ids) const;
  void EncodeWord(std::string_view word, bool plain, Ids* ids) const;
  // Appends `id`; a control token as the parts that it is merged from.
  void AppendParts(int32_t id, Ids* ids) const;

  const TokenizerSpec spec_;
  const WordSplitter splitter_;
  const AddedTokens raw_added_;         // found before normalisation
  const AddedTokens normalized_added_;  // found after it

  // Constant after Create().
  std::vector<std::string> bytes_;  // by id
  std::vector<bool> is_special_;    // by id
  std::vector<int32_t> byte_ids_;   // by byte; kNoToken: none
  BpeMerge merge_;
  // Words that become one token, by their bytes, which stand in bytes_.
  absl::flat_hash_map<std::string_view, int32_t> whole_words_;
  size_t longest_whole_word_ = 0;
  absl::flat_hash_map<int32_t, std::pair<int32_t, int32_t>> special_parts_;
};

}  // namespace strata

#endif  // CORE_TEXT_TOKENIZER_H_
