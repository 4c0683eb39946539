#include "client/strategy_list.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace strata {

std::vector<std::string> SplitStrategies(absl::string_view list) {
  const char separator = list.find(';') == list.npos ? ',' : ';';
  std::vector<std::string> items;
  for (absl::string_view piece : absl::StrSplit(list, separator)) {
    piece = absl::StripAsciiWhitespace(piece);
    const bool goes_on =
        separator == ',' && !piece.empty() && absl::ascii_isdigit(piece[0]);
    if (goes_on && !items.empty()) {
      absl::StrAppend(&items.back(), ",", piece);
    } else {
      items.emplace_back(piece);
    }
  }
  return items;
}

}  // namespace strata
