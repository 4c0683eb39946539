#include "core/text/marked_text.h"

#include <algorithm>

#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace strata {
namespace {

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// The end of the group of bytes at `at` that is normalised by itself: an ASCII
// character composes with nothing before it, so each one begins a group; an
// ill-formed part is one.
size_t GroupEnd(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && (end == at || !IsAscii(text[end]))) {
    const Utf8Char c = ReadUtf8(text.substr(end));
    if (c.kind != Utf8Char::kValid) return end == at ? at + c.num_bytes : end;
    end += c.num_bytes;
  }
  return end;
}

}  // namespace

MarkedText Cut(const MarkedText& marked, size_t begin, size_t end) {
  MarkedText cut{marked.text.substr(begin, end - begin), {}};
  auto range =
      std::partition_point(marked.plain.begin(), marked.plain.end(),
                           [&](const TextRange& r) { return r.end <= begin; });
  for (; range != marked.plain.end() && range->begin < end; ++range) {
    cut.plain.push_back({std::max(range->begin, begin) - begin,
                         std::min(range->end, end) - begin});
  }
  return cut;
}

MarkedText Normalize(const MarkedText& marked, std::string* storage) {
  const std::string_view text = marked.text;
  MarkedText normalized;
  storage->clear();
  storage->reserve(text.size());
  auto range = marked.plain.begin();
  for (size_t at = 0; at < text.size();) {
    const size_t end = GroupEnd(text, at);
    const std::string_view group = text.substr(at, end - at);
    const size_t begin_out = storage->size();
    if (IsAscii(group[0]) && group.size() == 1) {
      storage->push_back(group[0]);
    } else if (ReadUtf8(group).kind == Utf8Char::kValid) {
      AppendNfc(group, storage);
    } else {
      storage->append(group);
    }
    while (range != marked.plain.end() && range->end <= at) ++range;
    if (range != marked.plain.end() && range->begin < end) {
      auto& plain = normalized.plain;
      if (!plain.empty() && plain.back().end == begin_out) {
        plain.back().end = storage->size();
      } else {
        plain.push_back({begin_out, storage->size()});
      }
    }
    at = end;
  }
  normalized.text = *storage;
  return normalized;
}

}  // namespace strata
