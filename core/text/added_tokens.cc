#include "core/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace strata {
namespace {

bool BeginsWithWord(std::string_view text) {
  if (text.empty()) return false;
  const Utf8Char c = ReadUtf8(text);
  return c.kind == Utf8Char::kValid && IsWordCharacter(c.code_point);
}

bool EndsWithWord(std::string_view text) {
  const Utf8Char c = LastUtf8(text);
  return c.kind == Utf8Char::kValid && IsWordCharacter(c.code_point);
}

size_t WhiteSpaceAtEnd(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const Utf8Char c = LastUtf8(text.substr(0, text.size() - length));
    if (c.kind != Utf8Char::kValid || !IsWhiteSpace(c.code_point)) break;
    length += c.num_bytes;
  }
  return length;
}

size_t WhiteSpaceAtBegin(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const Utf8Char c = ReadUtf8(text.substr(length));
    if (c.kind != Utf8Char::kValid || !IsWhiteSpace(c.code_point)) break;
    length += c.num_bytes;
  }
  return length;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)), token_at_{nullptr} {
  for (const AddedToken& token : tokens_) {
    STRATA_CHECK(!token.content.empty());
    is_first_byte_[static_cast<uint8_t>(token.content[0])] = true;
    uint64_t node = 0;
    for (const char c : token.content) {
      const auto [child, is_new] =
          child_.try_emplace(node << 8 | static_cast<uint8_t>(c),
                             static_cast<uint32_t>(token_at_.size()));
      if (is_new) token_at_.push_back(nullptr);
      node = child->second;
    }
    token_at_[node] = &token;
  }
}

const AddedToken* AddedTokens::LongestAt(std::string_view text, size_t at,
                                         size_t special_end) const {
  const AddedToken* longest = nullptr;
  uint64_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    const auto child = child_.find(node << 8 | static_cast<uint8_t>(text[i]));
    if (child == child_.end()) break;
    node = child->second;
    const AddedToken* token = token_at_[node];
    if (token != nullptr && (!token->special || i + 1 <= special_end))
      longest = token;
  }
  return longest;
}

void AddedTokens::Split(
    const MarkedText& marked,
    absl::FunctionRef<void(const AddedToken* token, TextRange range)> part)
    const {
  const std::string_view text = marked.text;
  size_t done = 0;  // the parts so far end here
  auto plain = marked.plain.begin();
  for (size_t at = 0; at < text.size();) {
    if (!is_first_byte_[static_cast<uint8_t>(text[at])]) {
      ++at;
      continue;
    }
    while (plain != marked.plain.end() && plain->end <= at) ++plain;
    const bool near_plain = plain != marked.plain.end();
    const bool in_plain = near_plain && plain->begin <= at;
    const AddedToken* token = LongestAt(
        text, at, near_plain && !in_plain ? plain->begin : text.size());
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + token->content.size();
    if (token->special && in_plain) {
      // As the original does, what is passed over hides tokens that begin
      // inside it; but plain text hides nothing outside of itself.
      at = std::min(end, plain->end);
      continue;
    }
    at = end;
    if (token->single_word && (EndsWithWord(text.substr(0, begin)) ||
                               BeginsWithWord(text.substr(end)))) {
      continue;
    }
    if (token->lstrip && begin > done)
      begin -= WhiteSpaceAtEnd(text.substr(done, begin - done));
    if (token->rstrip) end += WhiteSpaceAtBegin(text.substr(end));
    if (done < begin) part(nullptr, {done, begin});
    part(token, {begin, end});
    done = end;
  }
  if (done < text.size()) part(nullptr, {done, text.size()});
}

}  // namespace strata
