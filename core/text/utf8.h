#ifndef CORE_TEXT_UTF8_H_
#define CORE_TEXT_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

// What stands at the beginning of a byte string.
struct Utf8Char {
  enum Kind {
    kValid,    // a character
    kInvalid,  // bytes that no character begins with: a maximal ill-formed part
    kIncomplete,  // the beginning of a character that ends with the string
  };
  Kind kind = kInvalid;
  size_t num_bytes = 0;
  char32_t code_point = 0;  // if valid
};

// Reads by the table of well-formed sequences of the Unicode standard (table
// 3-7). REQUIRES: !text.empty()
inline Utf8Char ReadUtf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {Utf8Char::kValid, 1, lead};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Char::kInvalid, 1, 0};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what is
  // above U+10FFFF.
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  char32_t code_point = lead & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Utf8Char::kIncomplete, i, 0};
    const bool fits =
        i == 1 ? byte(i) >= low && byte(i) <= high : (byte(i) & 0xC0) == 0x80;
    if (!fits) return {Utf8Char::kInvalid, i, 0};
    code_point = code_point << 6 | (byte(i) & 0x3F);
  }
  return {Utf8Char::kValid, length, code_point};
}

// The last character; kInvalid of 0 bytes if the text does not end with one.
inline Utf8Char LastUtf8(std::string_view text) {
  for (size_t n = 1; n <= 4 && n <= text.size(); ++n) {
    const Utf8Char c = ReadUtf8(text.substr(text.size() - n));
    if (c.kind == Utf8Char::kValid && c.num_bytes == n) return c;
  }
  return {};
}

// The length in bytes of the longest beginning of `text` that is UTF-8.
inline size_t ValidUtf8Prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Char c = ReadUtf8(text.substr(at));
    if (c.kind != Utf8Char::kValid) break;
    at += c.num_bytes;
  }
  return at;
}

// REQUIRES: code_point <= 0x10FFFF
inline void AppendUtf8(char32_t code_point, std::string* text) {
  const auto put = [&](char32_t byte) {
    text->push_back(static_cast<char>(byte));
  };
  if (code_point < 0x80) {
    put(code_point);
    return;
  }
  if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      put(0xE0 | code_point >> 12);
    } else {
      put(0xF0 | code_point >> 18);
      put(0x80 | (code_point >> 12 & 0x3F));
    }
    put(0x80 | (code_point >> 6 & 0x3F));
  }
  put(0x80 | (code_point & 0x3F));
}

}  // namespace strata

#endif  // CORE_TEXT_UTF8_H_
