#ifndef CORE_TEXT_UTF8_STREAM_H_
#define CORE_TEXT_UTF8_STREAM_H_

#include <string>
#include <string_view>

namespace strata {

// Bytes in, whole UTF-8 characters out.  What can never become a character is
// replaced by U+FFFD, one for each maximal ill-formed part (Unicode 3.9, as
// Python and Rust decode), so the output joined equals the decoding of all
// bytes joined.
class Utf8Stream {
 public:
  // Appends to *text what is complete with `bytes`.
  void Append(std::string_view bytes, std::string* text);
  // The end: an incomplete character becomes U+FFFD.
  void Finish(std::string* text);

 private:
  std::string pending_;  // the beginning of a character, at most 3 bytes
};

}  // namespace strata

#endif  // CORE_TEXT_UTF8_STREAM_H_
