#include "server/request.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/quote.h"
#include "server/prompt.h"
#include "server/request_strategy.h"
#include "server/sampling_check.h"

namespace strata {
namespace {

constexpr size_t kMaxRequestIdBytes = 256;
constexpr size_t kMaxCacheSaltBytes = 256;

// Where proto3's uint32 becomes int32, what is above 2^31 turns negative; the
// checks read it so.
template <typename Repeated>
std::vector<int32_t> ToIds(const Repeated& ids) {
  return std::vector<int32_t>(ids.begin(), ids.end());
}

absl::StatusOr<std::vector<int32_t>> EncodePromptText(const ServedModel& model,
                                                      const std::string& text,
                                                      bool parse_special) {
  // Nothing is no prompt, even where a BOS would come before it.
  if (text.empty()) return absl::InvalidArgumentError("text is empty");
  return EncodeText(model, text, parse_special);
}

absl::StatusOr<std::vector<int32_t>> EncodeChatMessage(const ServedModel& model,
                                                       const v1::Chat& chat) {
  std::vector<ChatMessage> messages;
  messages.reserve(chat.messages_size());
  for (const v1::ChatMessage& message : chat.messages()) {
    messages.push_back({message.role(), message.content()});
  }
  return EncodeChat(model, messages, !chat.no_generation_prompt());
}

absl::StatusOr<std::vector<int32_t>> ToPrompt(
    const ServedModel& model, const v1::GenerateRequest& message) {
  switch (message.prompt_case()) {
    case v1::GenerateRequest::kText:
      return EncodePromptText(model, message.text(), message.parse_special());
    case v1::GenerateRequest::kTokens:
      return ToIds(message.tokens().ids());
    case v1::GenerateRequest::kChat:
      return EncodeChatMessage(model, message.chat());
    case v1::GenerateRequest::PROMPT_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "the prompt is missing: one of text, tokens and chat must be set");
}

absl::StatusOr<std::vector<int32_t>> ToPrompt(const ServedModel& model,
                                              const v1::ScoreRequest& message) {
  switch (message.prompt_case()) {
    case v1::ScoreRequest::kText:
      return EncodePromptText(model, message.text(), /*parse_special=*/false);
    case v1::ScoreRequest::kTokens:
      return ToIds(message.tokens().ids());
    case v1::ScoreRequest::PROMPT_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "the prompt is missing: one of text and tokens must be set");
}

Sampling ToSampling(const v1::Sampling& message) {
  Sampling sampling;
  if (message.has_temperature()) sampling.temperature = message.temperature();
  if (message.has_top_p()) sampling.top_p = message.top_p();
  if (message.has_min_p()) sampling.min_p = message.min_p();
  sampling.top_k = static_cast<int32_t>(message.top_k());
  if (message.has_repetition_penalty()) {
    sampling.repetition_penalty = message.repetition_penalty();
  }
  sampling.presence_penalty = message.presence_penalty();
  sampling.frequency_penalty = message.frequency_penalty();
  sampling.seed = message.has_seed() ? message.seed() : RandomSeed();
  for (const auto& [token, bias] : message.logit_bias()) {
    sampling.logit_bias.push_back({static_cast<int32_t>(token), bias});
  }
  sampling.allowed_tokens = ToIds(message.allowed_token_ids());
  return sampling;
}

Stopping ToStopping(const v1::Stopping& message) {
  Stopping stopping;
  stopping.min_tokens = static_cast<int32_t>(message.min_tokens());
  stopping.stop.assign(message.stop().begin(), message.stop().end());
  stopping.stop_tokens = ToIds(message.stop_token_ids());
  stopping.ignore_eos = message.ignore_eos();
  stopping.include_stop = message.include_stop();
  return stopping;
}

// What Generate and Score have in common.
template <typename Message>
absl::StatusOr<Request> StartRequest(const ServedModel& model,
                                     const Message& message,
                                     absl::Time deadline) {
  STRATA_RETURN_IF_ERROR(CheckModelName(model, message.model()));
  STRATA_RETURN_IF_ERROR(CheckTopLogprobs(message.top_logprobs()));
  STRATA_ASSIGN_OR_RETURN(
      Request request,
      RequestWithStrategy(*model.strategies, message.strategy()));
  request.deadline = deadline;
  if (message.has_top_logprobs()) {
    request.num_top_logprobs = static_cast<int>(message.top_logprobs());
  }
  return request;
}

// It may be a secret, so it is not quoted.
absl::Status CheckCacheSalt(std::string_view salt) {
  if (salt.size() <= kMaxCacheSaltBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cache_salt has ", salt.size(), " bytes, at most ",
                   kMaxCacheSaltBytes, " are allowed"));
}

// Last, as it may take long.
template <typename Message>
absl::Status AddPrompt(const ServedModel& model, const Message& message,
                       Request* request) {
  STRATA_RETURN_IF_ERROR(CheckTextFits(model, TextBytes(message)));
  STRATA_ASSIGN_OR_RETURN(request->prompt, ToPrompt(model, message));
  return CheckPrompt(request->prompt, model.engine->limits().vocab_size);
}

}  // namespace

absl::StatusOr<Request> ToRequest(const ServedModel& model,
                                  const v1::GenerateRequest& message,
                                  absl::Time deadline) {
  STRATA_ASSIGN_OR_RETURN(Request request,
                          StartRequest(model, message, deadline));
  STRATA_RETURN_IF_ERROR(CheckRequestId(message.request_id()));
  STRATA_RETURN_IF_ERROR(CheckCacheSalt(message.cache_salt()));
  STRATA_RETURN_IF_ERROR(CheckNumSequences(message.num_sequences()));
  const int vocab_size = model.engine->limits().vocab_size;
  request.sampling = ToSampling(message.sampling());
  STRATA_RETURN_IF_ERROR(CheckSampling(vocab_size, &request.sampling));
  request.stopping = ToStopping(message.stopping());
  STRATA_RETURN_IF_ERROR(CheckStopping(
      vocab_size, model.tokenizer, MaxTokensOf(message), &request.stopping));
  STRATA_RETURN_IF_ERROR(CheckSomeTokenRemains(
      request.sampling, request.stopping, model.engine->eos_ids()));
  request.kind = Request::Kind::kGenerate;
  request.label = message.request_id();
  request.num_sequences = std::max<int>(1, message.num_sequences());
  request.priority = message.priority();
  request.cache_salt = message.cache_salt();
  request.bypass_prefix_cache = message.bypass_prefix_cache();
  request.tokens_only = message.tokens_only();
  STRATA_RETURN_IF_ERROR(AddPrompt(model, message, &request));
  return request;
}

absl::StatusOr<Request> ToRequest(const ServedModel& model,
                                  const v1::ScoreRequest& message,
                                  absl::Time deadline) {
  if (message.strategy().switches_size() > 0) {
    return absl::InvalidArgumentError(
        "strategy.switches: Score has no generated tokens to switch after");
  }
  STRATA_ASSIGN_OR_RETURN(Request request,
                          StartRequest(model, message, deadline));
  request.kind = Request::Kind::kScore;
  request.num_top_logprobs = static_cast<int>(message.top_logprobs());
  request.tokens_only = true;
  STRATA_RETURN_IF_ERROR(AddPrompt(model, message, &request));
  return request;
}

std::optional<uint32_t> MaxTokensOf(const v1::GenerateRequest& message) {
  const v1::Stopping& stopping = message.stopping();
  if (!stopping.has_max_tokens()) return std::nullopt;
  return stopping.max_tokens();
}

std::optional<uint32_t> MaxTokensOf(const v1::ScoreRequest&) {
  return std::nullopt;
}

absl::StatusOr<std::vector<int32_t>> ToTokens(
    const ServedModel& model, const v1::TokenizeRequest& message) {
  STRATA_RETURN_IF_ERROR(CheckTextFits(model, TextBytes(message)));
  switch (message.input_case()) {
    case v1::TokenizeRequest::kText:
      return EncodeText(model, message.text(), message.parse_special());
    case v1::TokenizeRequest::kChat:
      return EncodeChatMessage(model, message.chat());
    case v1::TokenizeRequest::INPUT_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "the input is missing: one of text and chat must be set");
}

size_t TextBytes(const v1::GenerateRequest& message) {
  return message.has_chat() ? message.chat().ByteSizeLong()
                            : message.text().size();
}

size_t TextBytes(const v1::ScoreRequest& message) {
  return message.text().size();
}

size_t TextBytes(const v1::TokenizeRequest& message) {
  return message.has_chat() ? message.chat().ByteSizeLong()
                            : message.text().size();
}

absl::Status CheckRequestId(std::string_view id) {
  if (id.size() <= kMaxRequestIdBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("request_id ", Quote(id), " has ", id.size(),
                   " bytes, at most ", kMaxRequestIdBytes, " are allowed"));
}

absl::Status CheckModelName(const ServedModel& model, std::string_view name) {
  if (name.empty() || name == model.name) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "model ", Quote(name), " is not served, ", Quote(model.name), " is"));
}

}  // namespace strata
