#ifndef CORE_TEXT_ADDED_TOKENS_H_
#define CORE_TEXT_ADDED_TOKENS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "core/text/marked_text.h"
#include "core/text/tokenizer_spec.h"

namespace strata {

// Finds tokens that stand in a text as they are: from the left the longest, by
// the rules of Hugging Face's tokenizers (AddedVocabulary::find_matches).
//
// Immutable and thread-safe.
class AddedTokens {
 public:
  // REQUIRES: contents are not empty
  explicit AddedTokens(std::vector<AddedToken> tokens);
  AddedTokens(const AddedTokens&) = delete;
  AddedTokens& operator=(const AddedTokens&) = delete;

  bool empty() const { return tokens_.empty(); }

  // Cuts the whole text into parts, in order: `token` is null for text between
  // tokens, which is not empty.  A control token is found only where no byte of
  // it is plain.
  void Split(const MarkedText& marked,
             absl::FunctionRef<void(const AddedToken* token, TextRange range)>
                 part) const;

 private:
  // The longest token at `at`; a control token must end by `special_end`. Null:
  // none.
  const AddedToken* LongestAt(std::string_view text, size_t at,
                              size_t special_end) const;

  std::vector<AddedToken> tokens_;
  // A trie.  Node 0 is the root.
  absl::flat_hash_map<uint64_t, uint32_t> child_;  // by node << 8 | byte
  std::vector<const AddedToken*>
      token_at_;  // by node; null: no token ends there
  bool is_first_byte_[256] = {};
};

}  // namespace strata

#endif  // CORE_TEXT_ADDED_TOKENS_H_
