#ifndef CORE_TEXT_PRE_TOKENIZER_H_
#define CORE_TEXT_PRE_TOKENIZER_H_

#include <memory>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "core/text/tokenizer_spec.h"

struct pcre2_real_code_8;

namespace strata {

// Cuts text into the words that are merged on their own, by the regular
// expressions of the models' own tokenizers.
//
// Immutable and thread-safe.
class WordSplitter {
 public:
  explicit WordSplitter(PreTokenizer kind);

  // All of `text` in order, word by word.  Each byte that is not UTF-8 is a
  // word, and text on either side of it is cut as if it stood alone.  Time is
  // linear in the length.
  void Split(std::string_view text,
             absl::FunctionRef<void(std::string_view word)> word) const;

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };
  // `text` is UTF-8.
  void SplitValid(std::string_view text,
                  absl::FunctionRef<void(std::string_view)> word) const;

  std::unique_ptr<pcre2_real_code_8, FreeCode> code_;
};

}  // namespace strata

#endif  // CORE_TEXT_PRE_TOKENIZER_H_
