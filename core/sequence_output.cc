#include "core/sequence_output.h"

#include <algorithm>

namespace strata {
namespace {

std::vector<int32_t> EndTokens(const Stopping& stopping,
                               const std::vector<int32_t>& eos_ids) {
  std::vector<int32_t> tokens = stopping.stop_tokens;
  if (!stopping.ignore_eos) {
    tokens.insert(tokens.end(), eos_ids.begin(), eos_ids.end());
  }
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

}  // namespace

SequenceOutput::SequenceOutput(const Tokenizer* tokenizer,
                               const Request& request,
                               const std::vector<int32_t>& eos_ids)
    : tokenizer_(tokenizer),
      request_(&request),
      end_tokens_(EndTokens(request.stopping, eos_ids)),
      stop_(request.stopping.stop, request.stopping.include_stop) {
  if (request.tokens_only && request.stopping.stop.empty()) {
    tokenizer_ = nullptr;
  }
}

SequenceOutput::Result SequenceOutput::Append(int32_t token) {
  const Stopping& stopping = request_->stopping;
  ++num_generated_;
  Result result;
  if (std::binary_search(end_tokens_.begin(), end_tokens_.end(), token)) {
    result.finish = FinishReason::kStop;
    FlushInto(stopping.include_stop ? Bytes(token) : "", &result.text);
  } else if (std::optional<std::string> stop =
                 AppendText(token, &result.text)) {
    result.finish = FinishReason::kStop;
    result.matched_stop = *std::move(stop);
  } else if (num_generated_ >= stopping.max_tokens) {
    result.finish = FinishReason::kLength;
    FlushInto("", &result.text);
  }
  if (request_->tokens_only) result.text.clear();
  return result;
}

std::string SequenceOutput::Flush() {
  std::string text;
  FlushInto("", &text);
  if (request_->tokens_only) text.clear();
  return text;
}

std::span<const int32_t> SequenceOutput::BannedAfter(int num_generated) const {
  if (num_generated >= request_->stopping.min_tokens) return {};
  return end_tokens_;
}

std::string_view SequenceOutput::Bytes(int32_t token) const {
  if (tokenizer_ == nullptr) return "";
  return tokenizer_->Bytes(token, /*skip_special=*/true);
}

std::optional<std::string> SequenceOutput::AppendText(int32_t token,
                                                      std::string* text) {
  std::string characters;
  utf8_.Append(Bytes(token), &characters);
  if (num_generated_ > request_->stopping.min_tokens) {
    return stop_.Append(characters, text);
  }
  stop_.AppendUnmatched(characters, text);
  return std::nullopt;
}

void SequenceOutput::FlushInto(std::string_view last_bytes, std::string* text) {
  std::string characters;
  utf8_.Append(last_bytes, &characters);
  utf8_.Finish(&characters);
  stop_.Finish(text);
  text->append(characters);
}

}  // namespace strata
