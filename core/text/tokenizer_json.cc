#include "core/text/tokenizer_json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "core/text/json_fields.h"
#include "core/text/tokenizer_config.h"

namespace strata {
namespace {

using nlohmann::json;

constexpr char kLlama3Regex[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen2Regex[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

template <typename... Parts>
absl::Status Malformed(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

template <typename... Parts>
absl::Status Unsupported(const Parts&... parts) {
  return absl::UnimplementedError(absl::StrCat(parts..., " is not supported"));
}

// The parts of a pre-tokenizer, normaliser or post-processor: those of a
// Sequence, or itself.
std::vector<json> Parts(const json& step, const char* key) {
  const json* parts = FindField(step, key);
  if (parts == nullptr) return {step};
  return std::vector<json>(parts->begin(), parts->end());
}

absl::Status ParseNormalizer(const json& root, TokenizerSpec* spec) {
  const json* normalizer = FindField(root, "normalizer");
  if (normalizer == nullptr) return absl::OkStatus();
  for (const json& part : Parts(*normalizer, "normalizers")) {
    STRATA_ASSIGN_OR_RETURN(const std::string type, GetText(part, "type"));
    if (type != "NFC") return Unsupported("normalizer ", Quote(type));
    spec->nfc = true;
  }
  return absl::OkStatus();
}

// Split with a known regular expression, then ByteLevel without its own.
absl::StatusOr<PreTokenizer> KnownSplit(const json& split) {
  const json* pattern = FindField(split, "pattern");
  if (pattern == nullptr) return Malformed("Split has no pattern");
  STRATA_ASSIGN_OR_RETURN(const std::string regex, GetText(*pattern, "Regex"));
  STRATA_ASSIGN_OR_RETURN(const std::string behavior,
                          GetText(split, "behavior"));
  STRATA_ASSIGN_OR_RETURN(const bool invert, GetBool(split, "invert", false));
  if (behavior != "Isolated" || invert) {
    return Unsupported("Split with behavior ", Quote(behavior),
                       invert ? ", inverted" : "");
  }
  if (regex == kLlama3Regex) return PreTokenizer::kLlama3;
  if (regex == kQwen2Regex) return PreTokenizer::kQwen2;
  return Unsupported("pre_tokenizer pattern ", Quote(regex));
}

absl::Status ParsePreTokenizer(const json& root, TokenizerSpec* spec) {
  const json* pre_tokenizer = FindField(root, "pre_tokenizer");
  if (pre_tokenizer == nullptr)
    return Unsupported("a tokenizer without pre_tokenizer");
  const std::vector<json> parts = Parts(*pre_tokenizer, "pretokenizers");
  std::vector<std::string> types;
  for (const json& part : parts) {
    STRATA_ASSIGN_OR_RETURN(types.emplace_back(), GetText(part, "type"));
  }
  if (types.empty() || types.back() != "ByteLevel" || types.size() > 2) {
    return Unsupported("pre_tokenizer ", Quote(pre_tokenizer->dump()));
  }
  STRATA_ASSIGN_OR_RETURN(const bool use_regex,
                          GetBool(parts.back(), "use_regex", true));
  STRATA_ASSIGN_OR_RETURN(spec->add_prefix_space,
                          GetBool(parts.back(), "add_prefix_space", true));
  if (types.size() == 1) {
    if (!use_regex) return Unsupported("ByteLevel alone without use_regex");
    spec->pre_tokenizer = PreTokenizer::kGpt2;
    return absl::OkStatus();
  }
  if (spec->add_prefix_space)
    return Unsupported("add_prefix_space after ", types[0]);
  if (types[0] == "Digits" && use_regex) {
    STRATA_ASSIGN_OR_RETURN(const bool individual,
                            GetBool(parts[0], "individual_digits", false));
    if (!individual) return Unsupported("Digits without individual_digits");
    spec->pre_tokenizer = PreTokenizer::kSmolLM;
    return absl::OkStatus();
  }
  if (types[0] == "Split" && !use_regex) {
    STRATA_ASSIGN_OR_RETURN(spec->pre_tokenizer, KnownSplit(parts[0]));
    return absl::OkStatus();
  }
  return Unsupported("pre_tokenizer ", Quote(types[0]),
                     use_regex ? " with" : " without", " use_regex");
}

absl::Status ParseVocabulary(const json& model, TokenizerSpec* spec) {
  const json* vocabulary = FindField(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_object())
    return Malformed("model has no vocab");
  for (const auto& [token, value] : vocabulary->items()) {
    STRATA_ASSIGN_OR_RETURN(const size_t id, ToTokenId(value));
    if (token.empty()) return Malformed("token ", id, " is empty");
    if (spec->tokens.size() <= id) spec->tokens.resize(id + 1);
    if (!spec->tokens[id].empty()) {
      return Malformed("id ", id, " is both ", Quote(spec->tokens[id]), " and ",
                       Quote(token));
    }
    spec->tokens[id] = token;
  }
  return absl::OkStatus();
}

// "a b" or ["a", "b"].
absl::Status ParseMerges(const json& model, TokenizerSpec* spec) {
  const json* merges = FindField(model, "merges");
  if (merges == nullptr || !merges->is_array())
    return Malformed("model has no merges");
  spec->merges.reserve(merges->size());
  for (const json& merge : *merges) {
    if (merge.is_string()) {
      const std::string& text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space != std::string::npos &&
          text.find(' ', space + 1) == std::string::npos) {
        spec->merges.emplace_back(text.substr(0, space),
                                  text.substr(space + 1));
        continue;
      }
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      spec->merges.emplace_back(merge[0].get<std::string>(),
                                merge[1].get<std::string>());
      continue;
    }
    return Malformed("merge ", spec->merges.size(),
                     " is not a pair of tokens: ", Quote(merge.dump()));
  }
  return absl::OkStatus();
}

absl::Status ParseUnknownToken(const json& model, TokenizerSpec* spec) {
  STRATA_ASSIGN_OR_RETURN(const std::string unk, GetText(model, "unk_token"));
  STRATA_ASSIGN_OR_RETURN(const bool fuse, GetBool(model, "fuse_unk", false));
  if (unk.empty()) return absl::OkStatus();
  if (fuse) return Unsupported("fuse_unk");
  for (size_t id = 0; id < spec->tokens.size(); ++id) {
    if (spec->tokens[id] == unk) spec->unk = static_cast<int32_t>(id);
  }
  if (!spec->unk) return Malformed("unk_token ", Quote(unk), " is no token");
  return absl::OkStatus();
}

absl::Status ParseModel(const json& root, TokenizerSpec* spec) {
  const json* model = FindField(root, "model");
  if (model == nullptr || !model->is_object()) return Malformed("no model");
  // Files of early versions name no type.
  STRATA_ASSIGN_OR_RETURN(const std::string type, GetText(*model, "type"));
  if (!type.empty() && type != "BPE")
    return Unsupported("model type ", Quote(type));
  const json* dropout = FindField(*model, "dropout");
  if (dropout != nullptr && *dropout != 0) return Unsupported("dropout");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    STRATA_ASSIGN_OR_RETURN(const std::string text, GetText(*model, key));
    if (!text.empty()) return Unsupported(key);
  }
  STRATA_ASSIGN_OR_RETURN(const bool byte_fallback,
                          GetBool(*model, "byte_fallback", false));
  if (byte_fallback) return Unsupported("byte_fallback");
  STRATA_ASSIGN_OR_RETURN(spec->ignore_merges,
                          GetBool(*model, "ignore_merges", false));
  STRATA_RETURN_IF_ERROR(ParseVocabulary(*model, spec));
  STRATA_RETURN_IF_ERROR(ParseMerges(*model, spec));
  return ParseUnknownToken(*model, spec);
}

absl::Status ParseAddedTokens(const json& root, TokenizerSpec* spec) {
  const json* added = FindField(root, "added_tokens");
  if (added == nullptr) return absl::OkStatus();
  if (!added->is_array()) return Malformed("added_tokens is not a list");
  for (const json& object : *added) {
    AddedToken token;
    const json* id = FindField(object, "id");
    if (id == nullptr) return Malformed("an added token has no id");
    STRATA_ASSIGN_OR_RETURN(token.id, ToTokenId(*id));
    STRATA_RETURN_IF_ERROR(ParseAddedToken(object, &token));
    STRATA_RETURN_IF_ERROR(PutAddedToken(token, spec));
  }
  return absl::OkStatus();
}

// The tokens that a post-processor puts around a text.
struct Frame {
  std::vector<int32_t> before;
  std::vector<int32_t> after;
};

absl::Status ParseTemplate(const json& processor, Frame* frame) {
  const json* single = FindField(processor, "single");
  const json* specials = FindField(processor, "special_tokens");
  if (single == nullptr || !single->is_array())
    return Malformed("TemplateProcessing: no single");
  bool after = false;
  for (const json& piece : *single) {
    if (FindField(piece, "Sequence") != nullptr) {
      after = true;
      continue;
    }
    const json* special = FindField(piece, "SpecialToken");
    if (special == nullptr || specials == nullptr)
      return Malformed("TemplateProcessing: no token");
    STRATA_ASSIGN_OR_RETURN(const std::string name, GetText(*special, "id"));
    const json* token = FindField(*specials, name.c_str());
    const json* ids = token == nullptr ? nullptr : FindField(*token, "ids");
    if (ids == nullptr) {
      return Malformed("TemplateProcessing: ", Quote(name), " has no ids");
    }
    for (const json& id : *ids) {
      STRATA_ASSIGN_OR_RETURN(
          (after ? frame->after : frame->before).emplace_back(), ToTokenId(id));
    }
  }
  return absl::OkStatus();
}

absl::Status ParsePostProcessor(const json& root, Frame* frame) {
  const json* processor = FindField(root, "post_processor");
  if (processor == nullptr) return absl::OkStatus();
  for (const json& part : Parts(*processor, "processors")) {
    STRATA_ASSIGN_OR_RETURN(const std::string type, GetText(part, "type"));
    if (type == "ByteLevel") continue;  // concerns offsets only
    if (type != "TemplateProcessing")
      return Unsupported("post_processor ", Quote(type));
    STRATA_RETURN_IF_ERROR(ParseTemplate(part, frame));
  }
  if (frame->before.size() > 1 || frame->after.size() > 1) {
    return Unsupported("a post_processor that adds several tokens on one side");
  }
  return absl::OkStatus();
}

// Once it is settled that a frame is added: with which token.
absl::Status SettleToken(const char* role, bool is_added,
                         const std::vector<int32_t>& in_frame,
                         std::optional<int32_t>* token) {
  if (!is_added) return absl::OkStatus();
  if (!token->has_value() && !in_frame.empty()) *token = in_frame[0];
  if (!token->has_value())
    return Malformed("add_", role, "_token without ", role, "_token");
  if (!in_frame.empty() && in_frame[0] != **token) {
    return Malformed("post_processor adds token ", in_frame[0], ", but ", role,
                     "_token is token ", **token);
  }
  return absl::OkStatus();
}

absl::StatusOr<json> ParseJson(std::string_view text, const char* name) {
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) return Malformed(name, ": not a JSON object");
  return value;
}

// `status` with the name of the file in front.
absl::Status InFile(const char* name, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(name, ": ", status.message()));
}

absl::Status ParseRoot(const json& root, TokenizerSpec* spec, Frame* frame) {
  STRATA_RETURN_IF_ERROR(ParseModel(root, spec));
  STRATA_RETURN_IF_ERROR(ParseNormalizer(root, spec));
  STRATA_RETURN_IF_ERROR(ParsePreTokenizer(root, spec));
  STRATA_RETURN_IF_ERROR(ParseAddedTokens(root, spec));
  STRATA_RETURN_IF_ERROR(ParsePostProcessor(root, frame));
  const json* decoder = FindField(root, "decoder");
  if (decoder != nullptr) {
    STRATA_ASSIGN_OR_RETURN(const std::string type, GetText(*decoder, "type"));
    if (type != "ByteLevel") return Unsupported("decoder ", Quote(type));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerSpec> ParseTokenizerJson(
    std::string_view tokenizer_json, std::string_view tokenizer_config_json) {
  TokenizerSpec spec;
  Frame frame;
  STRATA_ASSIGN_OR_RETURN(const json root,
                          ParseJson(tokenizer_json, "tokenizer.json"));
  if (auto status = ParseRoot(root, &spec, &frame); !status.ok()) {
    return InFile("tokenizer.json", status);
  }
  spec.add_bos = !frame.before.empty();
  if (!tokenizer_config_json.empty()) {
    STRATA_ASSIGN_OR_RETURN(
        const json config,
        ParseJson(tokenizer_config_json, "tokenizer_config.json"));
    if (auto status = ApplyTokenizerConfig(config, &spec); !status.ok()) {
      return InFile("tokenizer_config.json", status);
    }
  }
  for (const auto& [role, is_added, in_frame, token] :
       {std::tuple("bos", spec.add_bos, &frame.before, &spec.bos),
        std::tuple("eos", !frame.after.empty(), &frame.after, &spec.eos)}) {
    if (auto status = SettleToken(role, is_added, *in_frame, token);
        !status.ok()) {
      return InFile("tokenizer.json", status);
    }
  }
  return spec;
}

}  // namespace strata
