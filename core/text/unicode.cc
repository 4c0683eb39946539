#include "core/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/check.h"
#include "core/text/utf8.h"

namespace strata {
namespace {

struct CodePoints {
  char32_t first;
  char32_t last;
};

// Hugging Face's NFC has the data of Unicode 9: to it, what later versions made
// a mark or a second part of a composition is a character that neither moves
// nor composes.  (The ranges are the measured difference to utf8proc 2.8.)
constexpr CodePoints kInert[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},
    {0x9FE, 0x9FE},     {0xC3C, 0xC3C},     {0xD3B, 0xD3C},
    {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},
    {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B},
    {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11930, 0x11930},
    {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99},
    {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97},
    {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F},
    {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
    {0x1E4EC, 0x1E4EF}};

// Word characters of Unicode 15.1 and 16, which utf8proc 2.8 (15.0) does not
// know.
constexpr CodePoints kLaterWords[] = {
    {0x897, 0x897},     {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},
    {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3}, {0x10D40, 0x10D65},
    {0x10D69, 0x10D6D}, {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4},
    {0x10EFC, 0x10EFC}, {0x11380, 0x11389}, {0x1138B, 0x1138B},
    {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0},
    {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA},
    {0x113CC, 0x113D3}, {0x113E1, 0x113E2}, {0x116D0, 0x116E3},
    {0x11BC0, 0x11BE0}, {0x11BF0, 0x11BF9}, {0x11F5A, 0x11F5A},
    {0x13460, 0x143FA}, {0x16100, 0x16139}, {0x16D40, 0x16D6C},
    {0x16D70, 0x16D79}, {0x18CFF, 0x18CFF}, {0x1CCF0, 0x1CCF9},
    {0x1E5D0, 0x1E5FA}, {0x2EBF0, 0x2EE5D}};

template <size_t n>
bool Contains(const CodePoints (&ranges)[n], char32_t c) {
  const auto range =
      std::partition_point(std::begin(ranges), std::end(ranges),
                           [c](const CodePoints& r) { return r.last < c; });
  return range != std::end(ranges) && range->first <= c;
}

int CombiningClass(utf8proc_int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

void AppendDecomposed(char32_t code_point, std::vector<utf8proc_int32_t>* out) {
  constexpr int kLongest = 4;  // of a canonical decomposition
  utf8proc_int32_t parts[kLongest];
  int boundary_class = UTF8PROC_BOUNDCLASS_START;
  const utf8proc_ssize_t n = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(code_point), parts, kLongest,
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE),
      &boundary_class);
  STRATA_CHECK(n > 0 && n <= kLongest);
  out->insert(out->end(), parts, parts + n);
}

// Canonical ordering.  utf8proc's own is quadratic in the length of a run of
// marks.
void OrderMarks(std::vector<utf8proc_int32_t>* text) {
  const auto is_mark = [](utf8proc_int32_t c) {
    return CombiningClass(c) != 0;
  };
  auto begin = std::find_if(text->begin(), text->end(), is_mark);
  while (begin != text->end()) {
    const auto end = std::find_if_not(begin, text->end(), is_mark);
    std::stable_sort(begin, end, [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return CombiningClass(a) < CombiningClass(b);
    });
    begin = std::find_if(end, text->end(), is_mark);
  }
}

void AppendComposed(std::vector<utf8proc_int32_t>* points, std::string* out) {
  OrderMarks(points);
  const utf8proc_ssize_t n = utf8proc_normalize_utf32(
      points->data(), static_cast<utf8proc_ssize_t>(points->size()),
      static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  STRATA_CHECK(n >= 0);
  for (utf8proc_ssize_t i = 0; i < n; ++i)
    AppendUtf8(static_cast<char32_t>((*points)[i]), out);
  points->clear();
}

}  // namespace

bool IsWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
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
      // Join controls, and the symbols of Other_Alphabetic: circled and squared
      // letters.
      return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
             (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
             (c >= 0x1F170 && c <= 0x1F189) || Contains(kLaterWords, c);
  }
}

void AppendNfc(std::string_view text, std::string* out) {
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = ReadUtf8(text);
    STRATA_CHECK(c.kind == Utf8Char::kValid);
    text.remove_prefix(c.num_bytes);
    if (Contains(kInert, c.code_point)) {
      AppendComposed(&points, out);
      AppendUtf8(c.code_point, out);
    } else {
      AppendDecomposed(c.code_point, &points);
    }
  }
  AppendComposed(&points, out);
}

}  // namespace strata
