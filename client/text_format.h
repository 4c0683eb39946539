#ifndef CLIENT_TEXT_FORMAT_H_
#define CLIENT_TEXT_FORMAT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

// "0 B", "1023 B", "1.5 KiB", "3.25 MiB": three digits, binary units.
std::string FormatBytes(uint64_t num_bytes);

// `text` with runs of white space as one blank and other control characters
// and invalid UTF-8 as U+FFFD: it can neither break a line nor drive a
// terminal.
std::string OneLine(std::string_view text);

// Columns that a terminal gives to `text`.  REQUIRES: valid UTF-8.
int DisplayWidth(std::string_view text);

// `text`, or its beginning and "…" if it is wider than `width` >= 1 columns.
// Cuts between characters.  REQUIRES: valid UTF-8.
std::string CutToWidth(std::string_view text, int width);

// Columns of the terminal behind file descriptor `fd`; `otherwise` if it is
// none.
int TerminalWidth(int fd, int otherwise);

}  // namespace strata

#endif  // CLIENT_TEXT_FORMAT_H_
