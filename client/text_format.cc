#include "client/text_format.h"

#include <sys/ioctl.h>
#include <utf8proc.h>

#include "absl/strings/str_format.h"

namespace strata {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

// The first code point of `text`, negative if it is malformed, and its length
// in bytes, at least 1.  REQUIRES: text is not empty.
int32_t FirstCodePoint(std::string_view text, size_t* num_bytes) {
  utf8proc_int32_t code_point = -1;
  const utf8proc_ssize_t length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(text.size()), &code_point);
  *num_bytes = length > 0 ? static_cast<size_t>(length) : 1;
  return length > 0 ? code_point : -1;
}

bool IsBlank(int32_t code_point) {
  return code_point == ' ' || (code_point >= '\t' && code_point <= '\r') ||
         code_point == 0x85 || code_point == 0x2028 || code_point == 0x2029;
}

}  // namespace

std::string FormatBytes(uint64_t num_bytes) {
  if (num_bytes < 1024) return absl::StrFormat("%d B", num_bytes);
  double value = static_cast<double>(num_bytes);
  const char* unit = "B";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1023.5) break;
    value /= 1024;
    unit = next;
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, value, unit);
}

std::string OneLine(std::string_view text) {
  std::string line;
  bool pending_blank = false;
  size_t num_bytes = 0;
  for (; !text.empty(); text.remove_prefix(num_bytes)) {
    const int32_t code_point = FirstCodePoint(text, &num_bytes);
    if (code_point >= 0 && IsBlank(code_point)) {
      pending_blank = !line.empty();
      continue;
    }
    if (pending_blank) line += ' ';
    pending_blank = false;
    const bool printable = code_point >= 0 && utf8proc_category(code_point) !=
                                                  UTF8PROC_CATEGORY_CC;
    line += printable ? text.substr(0, num_bytes) : kReplacement;
  }
  return line;
}

int DisplayWidth(std::string_view text) {
  int width = 0;
  size_t num_bytes = 0;
  for (; !text.empty(); text.remove_prefix(num_bytes)) {
    width += utf8proc_charwidth(FirstCodePoint(text, &num_bytes));
  }
  return width;
}

std::string CutToWidth(std::string_view text, int width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  size_t kept = 0;
  size_t num_bytes = 0;
  for (int used = 1; kept < text.size(); kept += num_bytes) {  // 1: the "…"
    used += utf8proc_charwidth(FirstCodePoint(text.substr(kept), &num_bytes));
    if (used > width) break;
  }
  return std::string(text.substr(0, kept)) + "…";
}

int TerminalWidth(int fd, int otherwise) {
  winsize size = {};
  const bool known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : otherwise;
}

}  // namespace strata
