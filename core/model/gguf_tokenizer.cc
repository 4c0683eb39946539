#include "core/model/gguf_tokenizer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "core/model/file_error.h"

namespace strata {
namespace {

// Values of tokenizer.ggml.token_type.
constexpr int32_t kControl = 3;
constexpr int32_t kUserDefined = 4;
constexpr int32_t kUnused = 5;

struct KnownPreTokenizer {
  std::string_view name;  // tokenizer.ggml.pre
  PreTokenizer type;
  bool ignore_merges;
  bool nfc;
};

constexpr KnownPreTokenizer kPreTokenizers[] = {
    {"default", PreTokenizer::kGpt2, false, false},
    {"gpt-2", PreTokenizer::kGpt2, false, false},
    {"smollm", PreTokenizer::kSmolLM, false, false},
    {"llama-bpe", PreTokenizer::kLlama3, true, false},
    {"llama3", PreTokenizer::kLlama3, true, false},
    {"llama-v3", PreTokenizer::kLlama3, true, false},
    {"qwen2", PreTokenizer::kQwen2, false, true},
};

absl::Status SetPreTokenizer(const GgufMetadata& metadata,
                             TokenizerSpec* spec) {
  STRATA_ASSIGN_OR_RETURN(const std::string_view name,
                          metadata.StringOr("tokenizer.ggml.pre", "default"));
  const auto* known =
      std::ranges::find(kPreTokenizers, name, &KnownPreTokenizer::name);
  if (known == std::end(kPreTokenizers)) {
    return Unsupported(metadata.path(), "tokenizer.ggml.pre: ", Quote(name),
                       " is not supported; default, gpt-2, smollm, llama-bpe, "
                       "llama3, llama-v3 "
                       "and qwen2 are");
  }
  spec->pre_tokenizer = known->type;
  spec->ignore_merges = known->ignore_merges;
  spec->nfc = known->nfc;
  return absl::OkStatus();
}

absl::Status SetTokens(const GgufMetadata& metadata, int vocab_size,
                       TokenizerSpec* spec) {
  STRATA_ASSIGN_OR_RETURN(const auto tokens,
                          metadata.Strings("tokenizer.ggml.tokens"));
  if (tokens.empty() || tokens.size() > static_cast<size_t>(vocab_size)) {
    return Malformed(metadata.path(), "tokenizer.ggml.tokens has ",
                     tokens.size(), " tokens, the embedding ", vocab_size,
                     " rows");
  }
  std::vector<int32_t> types(tokens.size());
  if (metadata.Has("tokenizer.ggml.token_type")) {
    STRATA_ASSIGN_OR_RETURN(types,
                            metadata.Int32s("tokenizer.ggml.token_type"));
  }
  if (types.size() != tokens.size()) {
    return Malformed(metadata.path(), "tokenizer.ggml.token_type has ",
                     types.size(), " values for ", tokens.size(), " tokens");
  }
  spec->tokens.assign(tokens.begin(), tokens.end());
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == kUnused) spec->tokens[i].clear();
    if (types[i] != kControl && types[i] != kUserDefined) continue;
    AddedToken added;
    added.id = static_cast<int32_t>(i);
    added.content = spec->tokens[i];
    added.special = types[i] == kControl;
    spec->added.push_back(std::move(added));
  }
  return absl::OkStatus();
}

absl::Status SetMerges(const GgufMetadata& metadata, TokenizerSpec* spec) {
  STRATA_ASSIGN_OR_RETURN(const auto merges,
                          metadata.Strings("tokenizer.ggml.merges"));
  spec->merges.reserve(merges.size());
  for (const std::string_view merge : merges) {
    const size_t space = merge.find(' ');
    if (space == 0 || space == std::string_view::npos ||
        space + 1 == merge.size()) {
      return Malformed(metadata.path(), "tokenizer.ggml.merges: ", Quote(merge),
                       " is not two parts with a blank between");
    }
    spec->merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  return absl::OkStatus();
}

// A token id of the metadata; absent where the key is.
absl::StatusOr<std::optional<int32_t>> TokenId(const GgufMetadata& metadata,
                                               std::string_view key,
                                               int vocab_size) {
  if (!metadata.Has(key)) return std::nullopt;
  STRATA_ASSIGN_OR_RETURN(const int id, metadata.Integer(key));
  if (id >= vocab_size) {
    return Malformed(metadata.path(), key, " is ", id,
                     ", expected an id below ", vocab_size);
  }
  return id;
}

}  // namespace

absl::StatusOr<std::optional<TokenizerSpec>> ParseGgufTokenizer(
    const GgufMetadata& metadata, int vocab_size) {
  STRATA_ASSIGN_OR_RETURN(const std::string_view model,
                          metadata.StringOr("tokenizer.ggml.model", "none"));
  if (model == "none" || model == "no_vocab") return std::nullopt;
  if (model != "gpt2") {
    return Unsupported(metadata.path(), "tokenizer.ggml.model ", Quote(model),
                       model == "llama" ? " (SentencePiece)" : "",
                       " is not supported; gpt2 (byte-level BPE) is");
  }
  TokenizerSpec spec;
  STRATA_RETURN_IF_ERROR(SetPreTokenizer(metadata, &spec));
  STRATA_RETURN_IF_ERROR(SetTokens(metadata, vocab_size, &spec));
  STRATA_RETURN_IF_ERROR(SetMerges(metadata, &spec));
  STRATA_ASSIGN_OR_RETURN(
      spec.bos, TokenId(metadata, "tokenizer.ggml.bos_token_id", vocab_size));
  STRATA_ASSIGN_OR_RETURN(
      spec.eos, TokenId(metadata, "tokenizer.ggml.eos_token_id", vocab_size));
  // llama.cpp's default where the key is absent: only the Llama 3 pre-tokenizer
  // adds it.
  const bool adds_bos = spec.pre_tokenizer == PreTokenizer::kLlama3;
  STRATA_ASSIGN_OR_RETURN(
      spec.add_bos, metadata.BoolOr("tokenizer.ggml.add_bos_token", adds_bos));
  STRATA_ASSIGN_OR_RETURN(
      spec.add_prefix_space,
      metadata.BoolOr("tokenizer.ggml.add_space_prefix", false));
  STRATA_ASSIGN_OR_RETURN(const std::string_view chat_template,
                          metadata.StringOr("tokenizer.chat_template", ""));
  spec.chat_template = std::string(chat_template);
  spec.add_bos = spec.add_bos && spec.bos.has_value();
  return spec;
}

absl::StatusOr<std::vector<int32_t>> ParseGgufEosIds(
    const GgufMetadata& metadata, int vocab_size,
    const std::optional<TokenizerSpec>& tokenizer) {
  std::vector<int32_t> ids;
  const auto add = [&ids](int32_t id) {
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  };
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id"}) {
    STRATA_ASSIGN_OR_RETURN(const std::optional<int32_t> id,
                            TokenId(metadata, key, vocab_size));
    if (id) add(*id);
  }
  if (!tokenizer) return ids;
  for (const AddedToken& token : tokenizer->added) {
    const bool ends_turn =
        token.content == "<|im_end|>" || token.content == "<|eot_id|>";
    if (ends_turn &&
        tokenizer->chat_template.find(token.content) != std::string::npos)
      add(token.id);
  }
  return ids;
}

}  // namespace strata
