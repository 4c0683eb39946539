#ifndef CORE_TEXT_MARKED_TEXT_H_
#define CORE_TEXT_MARKED_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

// Bytes [begin, end) of a text.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;
};

// A text, some ranges of which are plain: no control token is read in them.
struct MarkedText {
  std::string_view text;
  std::vector<TextRange> plain;  // ascending, disjoint, not empty
};

// Bytes [begin, end) of `marked`.
MarkedText Cut(const MarkedText& marked, size_t begin, size_t end);

// `marked` in normalisation form C, its text stored in *storage.  A character
// that is made of plain and other text is plain.  What is not UTF-8 stays as it
// is.
MarkedText Normalize(const MarkedText& marked, std::string* storage);

}  // namespace strata

#endif  // CORE_TEXT_MARKED_TEXT_H_
