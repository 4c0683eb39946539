#include "server/prompt.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace strata {
namespace {

absl::Status CheckHasTokenizer(const ServedModel& model) {
  if (model.tokenizer != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the model has no tokenizer: send token ids instead of text");
}

size_t LongestTokenBytes(const Tokenizer& tokenizer) {
  size_t longest = 1;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    longest =
        std::max(longest, tokenizer.Bytes(id, /*skip_special=*/false).size());
  }
  return longest;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> EncodeText(const ServedModel& model,
                                                std::string_view text,
                                                bool parse_special) {
  STRATA_RETURN_IF_ERROR(CheckHasTokenizer(model));
  return model.tokenizer->Encode(text, {.add_bos = model.tokenizer->adds_bos(),
                                        .parse_special = parse_special});
}

absl::StatusOr<std::vector<int32_t>> EncodeChat(
    const ServedModel& model, const std::vector<ChatMessage>& messages,
    bool add_generation_prompt) {
  if (messages.empty()) {
    return absl::InvalidArgumentError("chat.messages is empty");
  }
  STRATA_RETURN_IF_ERROR(CheckHasTokenizer(model));
  if (model.chat == nullptr) {
    return absl::FailedPreconditionError(model.chat_error.ok()
                                             ? "the model has no chat template"
                                             : model.chat_error.message());
  }
  STRATA_ASSIGN_OR_RETURN(const std::vector<ChatTemplate::Piece> pieces,
                          model.chat->Render(messages, add_generation_prompt));
  return EncodePieces(*model.tokenizer, pieces);
}

absl::Status CheckTextFits(const ServedModel& model, size_t num_bytes) {
  // Encoding this much takes less time than looking at the vocabulary.
  constexpr size_t kAlwaysTried = 64 << 10;
  // Normalisation (NFC) makes three bytes of nine, at most.
  constexpr size_t kMaxShortening = 3;
  if (model.tokenizer == nullptr || num_bytes <= kAlwaysTried) {
    return absl::OkStatus();
  }
  const int max_model_len = model.engine->limits().max_model_len;
  const size_t max_bytes =
      kMaxShortening * max_model_len * LongestTokenBytes(*model.tokenizer);
  if (num_bytes <= max_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a prompt of ", num_bytes, " bytes cannot fit the context of ",
      max_model_len, " tokens"));
}

absl::Status CheckPrompt(const std::vector<int32_t>& ids, int vocab_size) {
  if (ids.empty()) return absl::InvalidArgumentError("the prompt is empty");
  return CheckTokenIds("prompt", ids, vocab_size);
}

absl::Status CheckTokenIds(const std::string& field,
                           const std::vector<int32_t>& ids, int vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          field, ": token id ", static_cast<uint32_t>(ids[i]), " at ", i,
          " is not below the vocabulary's size, ", vocab_size));
    }
  }
  return absl::OkStatus();
}

}  // namespace strata
