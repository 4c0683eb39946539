#include "core/text/tokenizer.h"

#include <algorithm>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "core/text/byte_unicode.h"
#include "core/text/utf8_stream.h"

namespace strata {
namespace {

constexpr int32_t kNoToken = -1;

template <typename... Parts>
absl::Status Contradiction(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("tokenizer: ", parts...));
}

std::string Quote(std::string_view text) {
  return absl::StrCat(
      "\"", absl::Utf8SafeCEscape(std::string(text.substr(0, 80))), "\"");
}

std::vector<AddedToken> SelectAdded(const TokenizerSpec& spec,
                                    bool normalized) {
  std::vector<AddedToken> selected;
  for (const AddedToken& token : spec.added) {
    if (token.normalized != normalized || token.content.empty()) continue;
    selected.push_back(token);
    if (normalized && spec.nfc) {
      std::string content;
      Normalize({token.content, {}}, &content);
      selected.back().content = std::move(content);
    }
  }
  return selected;
}

absl::Status CheckIds(const TokenizerSpec& spec) {
  if (spec.tokens.empty()) return Contradiction("no tokens");
  if (spec.tokens.size() > std::numeric_limits<int32_t>::max()) {
    return Contradiction(spec.tokens.size(),
                         " tokens are more than ids of 32 bits can name");
  }
  const int32_t num_tokens = static_cast<int32_t>(spec.tokens.size());
  const auto check = [&](const std::string& what, int32_t id) {
    if (id >= 0 && id < num_tokens) return absl::OkStatus();
    return Contradiction(what, " has id ", id, ", but ids are below ",
                         num_tokens);
  };
  for (const AddedToken& token : spec.added) {
    if (token.content.empty())
      return Contradiction("added token ", token.id, " is empty");
    STRATA_RETURN_IF_ERROR(
        check(absl::StrCat("added token ", Quote(token.content)), token.id));
  }
  if (spec.bos) STRATA_RETURN_IF_ERROR(check("the bos token", *spec.bos));
  if (spec.eos) STRATA_RETURN_IF_ERROR(check("the eos token", *spec.eos));
  if (spec.unk) STRATA_RETURN_IF_ERROR(check("the unk token", *spec.unk));
  if (spec.add_bos && !spec.bos)
    return Contradiction("add_bos without a bos token");
  if (spec.add_prefix_space && spec.pre_tokenizer != PreTokenizer::kGpt2) {
    return Contradiction(
        "add_prefix_space is supported with the GPT-2 pre-tokenizer only");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Create(
    TokenizerSpec spec) {
  STRATA_RETURN_IF_ERROR(CheckIds(spec));
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(spec)));
  STRATA_RETURN_IF_ERROR(tokenizer->AddBytes());
  STRATA_RETURN_IF_ERROR(tokenizer->AddMerges());
  tokenizer->AddWholeWords();
  return tokenizer;
}

Tokenizer::Tokenizer(TokenizerSpec spec)
    : spec_(std::move(spec)),
      splitter_(spec_.pre_tokenizer),
      raw_added_(SelectAdded(spec_, false)),
      normalized_added_(SelectAdded(spec_, true)) {}

absl::Status Tokenizer::AddBytes() {
  const size_t n = spec_.tokens.size();
  bytes_.resize(n);
  is_special_.resize(n);
  byte_ids_.assign(256, spec_.unk.value_or(kNoToken));
  for (size_t id = 0; id < n; ++id) {
    const std::string& spelling = spec_.tokens[id];
    bytes_[id] = UnspellBytes(spelling).value_or(spelling);
    if (bytes_[id].size() == 1) {
      byte_ids_[static_cast<uint8_t>(bytes_[id][0])] = static_cast<int32_t>(id);
    }
  }
  for (const AddedToken& token : spec_.added) {
    bytes_[token.id] = token.content;
    is_special_[token.id] = token.special;
  }
  for (const int32_t id : byte_ids_) {
    if (id != kNoToken && is_special_[id] && id != spec_.unk) {
      return Contradiction("control token ", Quote(spec_.tokens[id]),
                           " is a single byte");
    }
  }
  return absl::OkStatus();
}

absl::Status Tokenizer::AddMerges() {
  absl::flat_hash_map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < spec_.tokens.size(); ++id) {
    const std::string& spelling = spec_.tokens[id];
    if (spelling.empty()) continue;
    const auto [other, is_new] =
        ids.try_emplace(spelling, static_cast<int32_t>(id));
    if (!is_new) {
      return Contradiction("tokens ", other->second, " and ", id, " are both ",
                           Quote(spelling));
    }
  }
  if (spec_.merges.size() > std::numeric_limits<int32_t>::max()) {
    return Contradiction(spec_.merges.size(), " merges are too many");
  }
  for (size_t rank = 0; rank < spec_.merges.size(); ++rank) {
    const auto& [left, right] = spec_.merges[rank];
    const std::string both = left + right;
    int32_t found[3];
    const std::string_view parts[3] = {left, right, both};
    for (int i = 0; i < 3; ++i) {
      const auto id = ids.find(parts[i]);
      if (id == ids.end()) {
        return Contradiction("merge ", rank, " needs ", Quote(parts[i]),
                             ", which is no token");
      }
      found[i] = id->second;
    }
    merge_.Add(found[0], found[1], static_cast<int32_t>(rank), found[2]);
    if (is_special_[found[2]]) special_parts_[found[2]] = {found[0], found[1]};
  }
  return absl::OkStatus();
}

// Most words of a text are one token, so a word is looked up before it is
// merged.
void Tokenizer::AddWholeWords() {
  std::vector<bool> is_added(bytes_.size());
  for (const AddedToken& token : spec_.added) is_added[token.id] = true;
  Ids ids;
  for (size_t id = 0; id < bytes_.size(); ++id) {
    const std::string& bytes = bytes_[id];
    if (bytes.empty() || is_added[id] || !UnspellBytes(spec_.tokens[id]))
      continue;
    if (!spec_.ignore_merges) {
      ids.clear();
      EncodeWord(bytes, false, &ids);
      if (ids.size() != 1 || ids[0] != static_cast<int32_t>(id)) continue;
    }
    whole_words_[bytes] = static_cast<int32_t>(id);
    longest_whole_word_ = std::max(longest_whole_word_, bytes.size());
  }
}

std::vector<int32_t> Tokenizer::Encode(std::string_view text,
                                       EncodeOptions options) const {
  MarkedText marked{text, {}};
  if (!options.parse_special && !text.empty())
    marked.plain.push_back({0, text.size()});
  Ids ids = Encode(marked);
  if (options.add_bos && spec_.bos) ids.insert(ids.begin(), *spec_.bos);
  return ids;
}

std::vector<int32_t> Tokenizer::Encode(const MarkedText& text) const {
  Ids ids;
  const bool plain = !text.plain.empty();
  const auto encode_normalized = [&](const MarkedText& segment) {
    normalized_added_.Split(segment, [&](const AddedToken* token,
                                         TextRange range) {
      if (token != nullptr) {
        ids.push_back(token->id);
      } else {
        EncodeWords(segment.text.substr(range.begin, range.end - range.begin),
                    plain, &ids);
      }
    });
  };
  raw_added_.Split(text, [&](const AddedToken* token, TextRange range) {
    if (token != nullptr) {
      ids.push_back(token->id);
      return;
    }
    const MarkedText segment = Cut(text, range.begin, range.end);
    std::string storage;
    encode_normalized(spec_.nfc ? Normalize(segment, &storage) : segment);
  });
  return ids;
}

void Tokenizer::EncodeWords(std::string_view text, bool plain, Ids* ids) const {
  std::string prefixed;
  if (spec_.add_prefix_space && text[0] != ' ') {
    prefixed.append(" ").append(text);
    text = prefixed;
  }
  splitter_.Split(text,
                  [&](std::string_view word) { EncodeWord(word, plain, ids); });
}

void Tokenizer::EncodeWord(std::string_view word, bool plain, Ids* ids) const {
  if (word.size() <= longest_whole_word_) {
    if (const auto id = whole_words_.find(word); id != whole_words_.end()) {
      ids->push_back(id->second);
      return;
    }
  }
  Ids parts;
  parts.reserve(word.size());
  for (const char c : word) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(c)];
    // The unk token may be a control token.
    if (id != kNoToken && !(plain && is_special_[id])) parts.push_back(id);
  }
  merge_.Merge(&parts);
  if (plain && !special_parts_.empty()) {
    for (const int32_t id : parts) AppendParts(id, ids);
  } else {
    ids->insert(ids->end(), parts.begin(), parts.end());
  }
}

void Tokenizer::AppendParts(int32_t id, Ids* ids) const {
  const auto parts = special_parts_.find(id);
  if (parts == special_parts_.end()) {
    ids->push_back(id);
    return;
  }
  AppendParts(parts->second.first, ids);
  AppendParts(parts->second.second, ids);
}

std::string_view Tokenizer::Bytes(int32_t id, bool skip_special) const {
  if (id < 0 || id >= vocab_size() || (skip_special && is_special_[id]))
    return {};
  return bytes_[id];
}

std::string Tokenizer::Decode(const std::vector<int32_t>& ids,
                              bool skip_special) const {
  std::string text;
  Utf8Stream stream;
  for (const int32_t id : ids) stream.Append(Bytes(id, skip_special), &text);
  stream.Finish(&text);
  return text;
}

}  // namespace strata
