#ifndef CORE_TEXT_TOKENIZER_SPEC_H_
#define CORE_TEXT_TOKENIZER_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace strata {

// How text is cut into words before the merges.
enum class PreTokenizer {
  kGpt2,
  kSmolLM,  // every digit alone, then as GPT-2
  kLlama3,
  kQwen2,
};

// A token that is found in the text as it is, before pre-tokenisation.
struct AddedToken {
  int32_t id = 0;
  std::string content;   // UTF-8
  bool special = false;  // a control token: left out of decoded text
  bool lstrip = false;   // swallows white space before it
  bool rstrip = false;   // swallows white space after it
  bool single_word = false;
  bool normalized = false;
};

// A byte-level BPE tokenizer as plain data, as it stands in a tokenizer.json or
// in a GGUF file.
struct TokenizerSpec {
  std::vector<std::string> tokens;  // by id, in the byte-to-unicode spelling;
                                    // "" where an id is unused
  std::vector<std::pair<std::string, std::string>> merges;  // best first
  std::vector<AddedToken> added;
  PreTokenizer pre_tokenizer = PreTokenizer::kGpt2;
  bool ignore_merges =
      false;         // a whole word that is a token is that token (Llama 3)
  bool nfc = false;  // text is normalised to NFC first (Qwen)
  bool add_prefix_space = false;
  bool add_bos = false;
  // There is no add_eos: a prompt is to be continued, so an end token that a
  // tokenizer would append is left out.
  std::optional<int32_t> bos;
  std::optional<int32_t> eos;
  std::optional<int32_t>
      unk;  // stands for a byte that is no token; none: it is left out
  std::string chat_template;  // Jinja source; empty: none
};

}  // namespace strata

#endif  // CORE_TEXT_TOKENIZER_SPEC_H_
