#include "core/text/utf8_stream.h"

#include "core/text/utf8.h"

namespace strata {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

void Utf8Stream::Append(std::string_view bytes, std::string* text) {
  // A pending beginning is completed (or found ill-formed) byte by byte.
  while (!pending_.empty() && !bytes.empty()) {
    pending_.push_back(bytes.front());
    bytes.remove_prefix(1);
    const Utf8Char c = ReadUtf8(pending_);
    if (c.kind == Utf8Char::kIncomplete) continue;
    if (c.kind == Utf8Char::kValid) {
      text->append(pending_);
      pending_.clear();
      break;
    }
    // Only the last byte did not fit: it begins something else, and may be
    // pending itself.
    const char last = pending_.back();
    text->append(kReplacement);
    pending_.assign(1, last);
    const Utf8Char next = ReadUtf8(pending_);
    if (next.kind == Utf8Char::kIncomplete) continue;
    text->append(next.kind == Utf8Char::kValid ? std::string_view(pending_)
                                               : kReplacement);
    pending_.clear();
  }
  while (!bytes.empty()) {
    const size_t valid = ValidUtf8Prefix(bytes);
    text->append(bytes.substr(0, valid));
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    const Utf8Char c = ReadUtf8(bytes);
    if (c.kind == Utf8Char::kIncomplete) {
      pending_ = bytes;
      break;
    }
    text->append(kReplacement);
    bytes.remove_prefix(c.num_bytes);
  }
}

void Utf8Stream::Finish(std::string* text) {
  if (!pending_.empty()) text->append(kReplacement);
  pending_.clear();
}

}  // namespace strata
