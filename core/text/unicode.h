#ifndef CORE_TEXT_UNICODE_H_
#define CORE_TEXT_UNICODE_H_

#include <string>
#include <string_view>

namespace strata {

// The property White_Space.
bool IsWhiteSpace(char32_t code_point);

// A word character of UTS #18 annex C, the \w of Rust's regex: Alphabetic,
// mark, decimal digit, connector punctuation or join control.
bool IsWordCharacter(char32_t code_point);

// Appends `text` in normalisation form C to *out, as Hugging Face's tokenizers
// do it.  Text that is cut before ASCII characters may be given part by part.
// O(n log n). REQUIRES: text is UTF-8
void AppendNfc(std::string_view text, std::string* out);

}  // namespace strata

#endif  // CORE_TEXT_UNICODE_H_
