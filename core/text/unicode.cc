#include "core/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "core/text/utf8.h"

namespace strata {
namespace {

int CombiningClass(utf8proc_int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

void AppendDecomposed(char32_t code_point, std::vector<utf8proc_int32_t>* out) {
  constexpr int kLongest = 4;  // of a canonical decomposition
  utf8proc_int32_t parts[kLongest];
  int boundary_class = UTF8PROC_BOUNDCLASS_START;
  const utf8proc_ssize_t n = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(code_point), parts, kLongest,
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), &boundary_class);
  STRATA_CHECK(n > 0 && n <= kLongest);
  out->insert(out->end(), parts, parts + n);
}

// Canonical ordering.  utf8proc's own is quadratic in the length of a run of marks.
void OrderMarks(std::vector<utf8proc_int32_t>* text) {
  const auto is_mark = [](utf8proc_int32_t c) { return CombiningClass(c) != 0; };
  auto begin = std::find_if(text->begin(), text->end(), is_mark);
  while (begin != text->end()) {
    const auto end = std::find_if_not(begin, text->end(), is_mark);
    std::stable_sort(begin, end, [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return CombiningClass(a) < CombiningClass(b);
    });
    begin = std::find_if(end, text->end(), is_mark);
  }
}

}  // namespace

bool IsWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool IsWordCharacter(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      // Join controls, and the symbols of Other_Alphabetic: circled and squared letters.
      return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
             (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
             (c >= 0x1F170 && c <= 0x1F189);
  }
}

void AppendNfc(std::string_view text, std::string* out) {
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = ReadUtf8(text);
    STRATA_CHECK(c.kind == Utf8Char::kValid);
    AppendDecomposed(c.code_point, &points);
    text.remove_prefix(c.num_bytes);
  }
  OrderMarks(&points);
  const utf8proc_ssize_t n = utf8proc_normalize_utf32(
      points.data(), static_cast<utf8proc_ssize_t>(points.size()),
      static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  STRATA_CHECK(n >= 0);
  for (utf8proc_ssize_t i = 0; i < n; ++i) AppendUtf8(static_cast<char32_t>(points[i]), out);
}

}  // namespace strata
