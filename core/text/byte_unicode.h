#ifndef CORE_TEXT_BYTE_UNICODE_H_
#define CORE_TEXT_BYTE_UNICODE_H_

#include <optional>
#include <string>
#include <string_view>

namespace strata {

// Byte-level BPE vocabularies spell each byte as one printable character: bytes
// that are printable in Latin-1 as themselves, the other 68 as U+0100 and
// following (bytes_to_unicode of GPT-2).

// The bytes that a spelling stands for; nothing if a character of it spells no
// byte.
std::optional<std::string> UnspellBytes(std::string_view spelling);

}  // namespace strata

#endif  // CORE_TEXT_BYTE_UNICODE_H_
