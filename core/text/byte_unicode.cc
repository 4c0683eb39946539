#include "core/text/byte_unicode.h"

#include <array>
#include <cstdint>

#include "core/text/utf8.h"

namespace strata {
namespace {

constexpr int kNumShifted = 68;

constexpr bool SpellsItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         byte >= 0xAE;
}

// Byte of the character U+0100 + i.
constexpr std::array<uint8_t, kNumShifted> kShifted = [] {
  std::array<uint8_t, kNumShifted> bytes{};
  int n = 0;
  for (int byte = 0; byte < 256; ++byte) {
    if (!SpellsItself(byte)) bytes[n++] = static_cast<uint8_t>(byte);
  }
  return bytes;
}();

}  // namespace

std::optional<std::string> UnspellBytes(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  while (!spelling.empty()) {
    const Utf8Char c = ReadUtf8(spelling);
    if (c.kind != Utf8Char::kValid) return std::nullopt;
    spelling.remove_prefix(c.num_bytes);
    if (c.code_point < 0x100 && SpellsItself(static_cast<int>(c.code_point))) {
      bytes.push_back(static_cast<char>(c.code_point));
    } else if (c.code_point >= 0x100 && c.code_point < 0x100 + kNumShifted) {
      bytes.push_back(static_cast<char>(kShifted[c.code_point - 0x100]));
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace strata
