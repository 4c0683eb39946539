#ifndef CORE_QUOTE_H_
#define CORE_QUOTE_H_

#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace strata {

// What a client sent, fit for an error message: in quotes, cut to 64 bytes,
// everything but printable ASCII escaped.  At most 261 bytes.
inline std::string Quote(std::string_view text) {
  constexpr size_t kMaxBytes = 64;
  const bool is_cut = text.size() > kMaxBytes;
  return absl::StrCat("\"",
                      absl::CHexEscape(std::string(text.substr(0, kMaxBytes))),
                      is_cut ? "...\"" : "\"");
}

}  // namespace strata

#endif  // CORE_QUOTE_H_
