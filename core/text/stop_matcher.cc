#include "core/text/stop_matcher.h"

#include <algorithm>

#include "base/check.h"

namespace strata {

StopMatcher::StopMatcher(const std::vector<std::string>& stop,
                         bool include_stop)
    : include_stop_(include_stop) {
  for (const std::string& text : stop) {
    STRATA_CHECK(!text.empty());
    std::vector<size_t> border(text.size());
    for (size_t i = 1, length = 0; i < text.size(); ++i) {
      while (length > 0 && text[i] != text[length]) length = border[length - 1];
      if (text[i] == text[length]) ++length;
      border[i] = length;
    }
    patterns_.push_back({.text = text, .border = std::move(border)});
  }
}

std::optional<std::string> StopMatcher::Append(std::string_view text,
                                               std::string* out) {
  const Pattern* found = nullptr;
  size_t found_begin = 0;  // in held_ + text
  for (Pattern& pattern : patterns_) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (!pattern.Read(text[i])) continue;
      const size_t begin = held_.size() + i + 1 - pattern.text.size();
      if (found == nullptr || begin < found_begin) {
        found = &pattern;
        found_begin = begin;
      }
      break;
    }
  }
  if (found == nullptr) {
    Hold(text, out);
    return std::nullopt;
  }
  held_.append(text);
  held_.resize(found_begin + (include_stop_ ? found->text.size() : 0));
  Finish(out);
  return found->text;
}

void StopMatcher::AppendUnmatched(std::string_view text, std::string* out) {
  for (Pattern& pattern : patterns_) {
    for (const char byte : text) pattern.Read(byte);
  }
  Hold(text, out);
}

void StopMatcher::Finish(std::string* out) {
  out->append(held_);
  held_.clear();
}

void StopMatcher::Hold(std::string_view text, std::string* out) {
  size_t num_held = 0;
  for (const Pattern& pattern : patterns_) {
    num_held = std::max(num_held, pattern.num_matched);
  }
  held_.append(text);
  const size_t num_certain = held_.size() - num_held;
  out->append(held_, 0, num_certain);
  held_.erase(0, num_certain);
}

bool StopMatcher::Pattern::Read(char byte) {
  while (num_matched > 0 && text[num_matched] != byte) {
    num_matched = border[num_matched - 1];
  }
  if (text[num_matched] == byte) ++num_matched;
  if (num_matched < text.size()) return false;
  num_matched = border.back();
  return true;
}

}  // namespace strata
