#include "core/text/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "core/text/json_fields.h"

namespace strata {
namespace {

using nlohmann::json;

// The keys of tokens that are control tokens by their role.
constexpr const char* kRoles[] = {"bos_token", "eos_token", "unk_token",
                                  "sep_token", "pad_token", "cls_token",
                                  "mask_token"};

std::optional<int32_t> FindToken(const TokenizerSpec& spec,
                                 const std::string& content) {
  const auto found = std::find(spec.tokens.begin(), spec.tokens.end(), content);
  if (found == spec.tokens.end()) return std::nullopt;
  return static_cast<int32_t>(found - spec.tokens.begin());
}

// Adds a token that is known by its content, after all others if it is new.
absl::StatusOr<int32_t> PutControlToken(AddedToken token, TokenizerSpec* spec) {
  for (const AddedToken& added : spec->added) {
    if (added.content == token.content) return added.id;
  }
  token.special = true;
  token.id = FindToken(*spec, token.content)
                 .value_or(static_cast<int32_t>(spec->tokens.size()));
  STRATA_RETURN_IF_ERROR(PutAddedToken(token, spec));
  return token.id;
}

// `bos_token` and its like: the content, or an object.
absl::StatusOr<std::optional<int32_t>> ApplyRole(const json& value,
                                                 const char* role,
                                                 TokenizerSpec* spec) {
  AddedToken token;
  if (value.is_object()) {
    STRATA_RETURN_IF_ERROR(ParseAddedToken(value, &token));
  } else if (value.is_string()) {
    token.content = value.get<std::string>();
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(role, " is neither a string nor a token"));
  }
  if (token.content.empty()) return std::nullopt;
  STRATA_ASSIGN_OR_RETURN(const int32_t id, PutControlToken(token, spec));
  return id;
}

absl::Status ApplyAddedTokensDecoder(const json& decoder, TokenizerSpec* spec) {
  if (!decoder.is_object()) {
    return absl::InvalidArgumentError("added_tokens_decoder is not an object");
  }
  std::map<int32_t, AddedToken> tokens;
  for (const auto& [key, value] : decoder.items()) {
    int32_t id = -1;
    const auto [end, error] =
        std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "added_tokens_decoder: ", Quote(key), " is not a token id"));
    }
    STRATA_ASSIGN_OR_RETURN(tokens[id].id, ToTokenId(json(id)));
    STRATA_RETURN_IF_ERROR(ParseAddedToken(value, &tokens[id]));
  }
  for (const auto& [id, token] : tokens)
    STRATA_RETURN_IF_ERROR(PutAddedToken(token, spec));
  return absl::OkStatus();
}

// Classes that replace the file's post-processor by add_bos_token; these are
// its defaults.
std::optional<bool> DefaultAddBos(std::string name) {
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  if (name == "LlamaTokenizer" || name == "CodeLlamaTokenizer" ||
      name == "GemmaTokenizer" || name == "CohereTokenizer") {
    return true;
  }
  if (name == "GPTNeoXTokenizer") return false;
  return std::nullopt;
}

absl::Status ApplyClass(const json& config, TokenizerSpec* spec) {
  STRATA_ASSIGN_OR_RETURN(const std::string name,
                          GetText(config, "tokenizer_class"));
  const std::optional<bool> default_add_bos = DefaultAddBos(name);
  if (!default_add_bos) return absl::OkStatus();
  STRATA_ASSIGN_OR_RETURN(spec->add_bos,
                          GetBool(config, "add_bos_token", *default_add_bos));
  return absl::OkStatus();
}

absl::Status ApplyChatTemplate(const json& value, TokenizerSpec* spec) {
  if (value.is_string()) {
    spec->chat_template = value.get<std::string>();
    return absl::OkStatus();
  }
  // Several templates by name.
  if (!value.is_array()) {
    return absl::InvalidArgumentError(
        "chat_template is neither a string nor a list");
  }
  for (const json& named : value) {
    STRATA_ASSIGN_OR_RETURN(const std::string name, GetText(named, "name"));
    if (name != "default") continue;
    STRATA_ASSIGN_OR_RETURN(spec->chat_template, GetText(named, "template"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PutAddedToken(const AddedToken& token, TokenizerSpec* spec) {
  if (token.content.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("added token ", token.id, " is empty"));
  }
  const size_t id = static_cast<size_t>(token.id);
  const std::optional<int32_t> other = FindToken(*spec, token.content);
  if (other && *other != token.id) {
    return absl::InvalidArgumentError(
        absl::StrCat("added token ", Quote(token.content), " has ids ", *other,
                     " and ", token.id));
  }
  if (spec->tokens.size() <= id) spec->tokens.resize(id + 1);
  if (!spec->tokens[id].empty() && spec->tokens[id] != token.content) {
    return absl::InvalidArgumentError(
        absl::StrCat("id ", token.id, " is both ", Quote(spec->tokens[id]),
                     " and ", Quote(token.content)));
  }
  spec->tokens[id] = token.content;
  const auto same = std::find_if(
      spec->added.begin(), spec->added.end(),
      [&](const AddedToken& added) { return added.id == token.id; });
  if (same != spec->added.end()) {
    *same = token;
  } else {
    spec->added.push_back(token);
  }
  return absl::OkStatus();
}

absl::Status ParseAddedToken(const json& object, AddedToken* token) {
  STRATA_ASSIGN_OR_RETURN(token->content, GetText(object, "content"));
  STRATA_ASSIGN_OR_RETURN(token->special, GetBool(object, "special", false));
  STRATA_ASSIGN_OR_RETURN(token->lstrip, GetBool(object, "lstrip", false));
  STRATA_ASSIGN_OR_RETURN(token->rstrip, GetBool(object, "rstrip", false));
  STRATA_ASSIGN_OR_RETURN(token->single_word,
                          GetBool(object, "single_word", false));
  STRATA_ASSIGN_OR_RETURN(token->normalized,
                          GetBool(object, "normalized", !token->special));
  return absl::OkStatus();
}

absl::Status ApplyTokenizerConfig(const json& config, TokenizerSpec* spec) {
  if (!config.is_object())
    return absl::InvalidArgumentError("not a JSON object");
  if (const json* decoder = FindField(config, "added_tokens_decoder")) {
    STRATA_RETURN_IF_ERROR(ApplyAddedTokensDecoder(*decoder, spec));
  }
  for (const char* role : kRoles) {
    const json* value = FindField(config, role);
    if (value == nullptr) continue;
    STRATA_ASSIGN_OR_RETURN(const std::optional<int32_t> id,
                            ApplyRole(*value, role, spec));
    if (std::string_view(role) == "bos_token") spec->bos = id;
    if (std::string_view(role) == "eos_token") spec->eos = id;
  }
  if (const json* more = FindField(config, "additional_special_tokens")) {
    for (const json& value : *more) {
      STRATA_RETURN_IF_ERROR(
          ApplyRole(value, "additional_special_tokens", spec).status());
    }
  }
  STRATA_RETURN_IF_ERROR(ApplyClass(config, spec));
  // transformers takes this one from here alone, where the ByteLevel
  // pre-tokenizer stands alone.
  if (spec->pre_tokenizer == PreTokenizer::kGpt2) {
    STRATA_ASSIGN_OR_RETURN(spec->add_prefix_space,
                            GetBool(config, "add_prefix_space", false));
  }
  if (const json* chat_template = FindField(config, "chat_template")) {
    STRATA_RETURN_IF_ERROR(ApplyChatTemplate(*chat_template, spec));
  }
  return absl::OkStatus();
}

}  // namespace strata
