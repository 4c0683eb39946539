#ifndef BASE_QUOTE_H_
#define BASE_QUOTE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace strata {

// What a client or a file says, fit for an error message: in quotes, cut to
// `max_bytes`, everything but printable ASCII escaped.  At most 4 * max_bytes +
// 5 bytes.
inline std::string Quote(std::string_view text, size_t max_bytes = 64) {
  const bool is_cut = text.size() > max_bytes;
  return absl::StrCat("\"",
                      absl::CHexEscape(std::string(text.substr(0, max_bytes))),
                      is_cut ? "...\"" : "\"");
}

}  // namespace strata

#endif  // BASE_QUOTE_H_
