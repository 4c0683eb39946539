#include "core/text/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>

#include "base/check.h"
#include "core/text/utf8.h"

namespace strata {
namespace {

// The originals are written for Oniguruma with the character classes of
// Unicode 16.  PCRE2 has those of its own version (14 in 10.42), and its \s has
// U+180E too; so what later versions added to the classes is listed here.  (The
// ranges are the measured difference; a newer PCRE2 has them already.)
#define LETTERS                                                     \
  "\\p{L}"                                                          \
  "\\x{1C89}\\x{1C8A}\\x{A7CB}-\\x{A7CD}\\x{A7DA}-\\x{A7DC}"        \
  "\\x{105C0}-\\x{105F3}\\x{10D4A}-\\x{10D65}\\x{10D6F}-\\x{10D85}" \
  "\\x{10EC2}-\\x{10EC4}\\x{1123F}\\x{11240}\\x{11380}-\\x{11389}"  \
  "\\x{1138B}\\x{1138E}\\x{11390}-\\x{113B5}\\x{113B7}\\x{113D1}"   \
  "\\x{113D3}\\x{11BC0}-\\x{11BE0}\\x{11F02}\\x{11F04}-\\x{11F10}"  \
  "\\x{11F12}-\\x{11F33}\\x{1342F}\\x{13441}-\\x{13446}"            \
  "\\x{13460}-\\x{143FA}\\x{16100}-\\x{1611D}\\x{16D40}-\\x{16D6C}" \
  "\\x{18CFF}\\x{1B132}\\x{1B155}\\x{1DF25}-\\x{1DF2A}"             \
  "\\x{1E030}-\\x{1E06D}\\x{1E4D0}-\\x{1E4EB}\\x{1E5D0}-\\x{1E5ED}" \
  "\\x{1E5F0}\\x{2B739}\\x{2EBF0}-\\x{2EE5D}\\x{31350}-\\x{323AF}"
#define NUMBERS                                                     \
  "\\p{N}"                                                          \
  "\\x{10D40}-\\x{10D49}\\x{116D0}-\\x{116E3}\\x{11BF0}-\\x{11BF9}" \
  "\\x{11F50}-\\x{11F59}\\x{16130}-\\x{16139}\\x{16D70}-\\x{16D79}" \
  "\\x{1CCF0}-\\x{1CCF9}\\x{1D2C0}-\\x{1D2D3}\\x{1E4F0}-\\x{1E4F9}" \
  "\\x{1E5F1}-\\x{1E5FA}"
// Rust's char::is_numeric, of Unicode 17, which the Digits pre-tokenizer asks.
#define DIGITS NUMBERS "\\x{11DE0}-\\x{11DE9}\\x{16FF4}-\\x{16FF6}"
#define SPACE "\\t-\\r\\x{85}\\p{Z}"

// Nowhere does a failed attempt cost more than the characters that the next
// alternatives take, so matching is linear; repeats that end an alternative
// give nothing back (++).
constexpr char kGpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d"
    "| ?[" LETTERS
    "]++"
    "| ?[" NUMBERS
    "]++"
    "| ?[^" SPACE LETTERS NUMBERS
    "]++"
    "|[" SPACE "]+(?![^" SPACE
    "])"
    "|[" SPACE "]++";

// As if the text had been cut at every digit before: a digit is a word, and
// white space before one is as if at the end of the text.
constexpr char kSmolLM[] =
    "'s|'t|'re|'ve|'m|'ll|'d"
    "| ?[" LETTERS
    "]++"
    "|[" DIGITS
    "]"
    "| ?[^" SPACE LETTERS DIGITS
    "]++"
    "|[" SPACE "]+(?![^" SPACE DIGITS
    "])"
    "|[" SPACE "]++";

#define LLAMA3_AND_QWEN2(max_numbers)       \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)"            \
  "|[^\\r\\n" LETTERS NUMBERS "]?[" LETTERS \
  "]++"                                     \
  "|[" NUMBERS "]{1," max_numbers           \
  "}+"                                      \
  "| ?[^" SPACE LETTERS NUMBERS             \
  "]++[\\r\\n]*+"                           \
  "|[" SPACE                                \
  "]*[\\r\\n]++"                            \
  "|[" SPACE "]+(?![^" SPACE                \
  "])"                                      \
  "|[" SPACE "]++"
constexpr char kLlama3[] = LLAMA3_AND_QWEN2("3");
constexpr char kQwen2[] = LLAMA3_AND_QWEN2("1");

#undef LLAMA3_AND_QWEN2
#undef SPACE
#undef DIGITS
#undef NUMBERS
#undef LETTERS

std::string_view Pattern(PreTokenizer kind) {
  switch (kind) {
    case PreTokenizer::kGpt2:
      return kGpt2;
    case PreTokenizer::kSmolLM:
      return kSmolLM;
    case PreTokenizer::kLlama3:
      return kLlama3;
    case PreTokenizer::kQwen2:
      return kQwen2;
  }
  STRATA_CHECK(false);
}

template <typename T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* p) const { Free(p); }
};
using MatchData =
    std::unique_ptr<pcre2_match_data,
                    Deleter<pcre2_match_data, pcre2_match_data_free>>;
using MatchContext =
    std::unique_ptr<pcre2_match_context,
                    Deleter<pcre2_match_context, pcre2_match_context_free>>;

}  // namespace

void WordSplitter::FreeCode::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

WordSplitter::WordSplitter(PreTokenizer kind) {
  const std::string_view pattern = Pattern(kind);
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()),
                            pattern.size(), PCRE2_UTF | PCRE2_UCP, &error,
                            &offset, nullptr));
  STRATA_CHECK(code_ != nullptr);
  // Where there is no JIT, pcre2_match() interprets.
  (void)pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
}

void WordSplitter::Split(std::string_view text,
                         absl::FunctionRef<void(std::string_view)> word) const {
  while (!text.empty()) {
    const size_t valid = ValidUtf8Prefix(text);
    if (valid > 0) SplitValid(text.substr(0, valid), word);
    text.remove_prefix(valid);
    if (text.empty()) break;
    word(text.substr(0, 1));
    text.remove_prefix(1);
  }
}

void WordSplitter::SplitValid(
    std::string_view text,
    absl::FunctionRef<void(std::string_view)> word) const {
  const MatchData data(pcre2_match_data_create(1, nullptr));
  const MatchContext context(pcre2_match_context_create(nullptr));
  STRATA_CHECK(data != nullptr && context != nullptr);
  // The interpreter counts each character that a repeat gives back: a run of
  // white space may need as many as it is long.
  pcre2_set_match_limit(context.get(), UINT32_MAX);
  const PCRE2_SIZE* match = pcre2_get_ovector_pointer(data.get());
  for (size_t at = 0; at < text.size(); at = match[1]) {
    const int result = pcre2_match(
        code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
        PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED, data.get(), context.get());
    // The alternatives cover all characters.
    STRATA_CHECK(result > 0 && match[0] == at && match[1] > at);
    word(text.substr(at, match[1] - at));
  }
}

}  // namespace strata
