#include "server/vllm/generate_answer.h"

#include <algorithm>
#include <utility>

#include "server/finish_word.h"

namespace strata::vllm {
namespace {

using ::vllm::grpc::engine::GenerateComplete;
using ::vllm::grpc::engine::GenerateResponse;
using ::vllm::grpc::engine::GenerateStreamChunk;
using ::vllm::grpc::engine::InputLogProbs;
using ::vllm::grpc::engine::OutputLogProbs;
using ::vllm::grpc::engine::TopLogProbs;

// Of one chunk.  With 20 log-probabilities each it has some 200 kB: clients
// receive 4 MB unless they ask for more.
constexpr size_t kMaxChunkTokens = 1024;

void AddTop(const SampledToken& token, TopLogProbs* message) {
  for (int i = 0; i < token.num_top; ++i) {
    message->add_values(token.top[i].logprob);
    message->add_token_ids(token.top[i].token);
  }
}

}  // namespace

void GenerateAnswer::Admit(const Request& request,
                           const std::vector<int32_t>& eos_ids) {
  num_prompt_tokens_ = request.prompt.size();
  if (options_.has_prompt_logprobs) prompt_ = request.prompt;
  num_top_logprobs_ = request.num_top_logprobs;
  sequences_.resize(request.num_sequences);
  stop_tokens_ = request.stopping.stop_tokens;
  if (request.stopping.ignore_eos) return;
  std::erase_if(stop_tokens_, [&](int32_t token) {
    return std::find(eos_ids.begin(), eos_ids.end(), token) != eos_ids.end();
  });
}

void GenerateAnswer::Add(SequenceDelta delta) {
  Sequence& sequence = sequences_[delta.index];
  sequence.tokens.insert(sequence.tokens.end(), delta.tokens.begin(),
                         delta.tokens.end());
  sequence.logprobs.insert(sequence.logprobs.end(), delta.logprobs.begin(),
                           delta.logprobs.end());
  sequence.end = std::move(delta.end);
  if (sequence.end.has_value()) {
    is_aborted_ = is_aborted_ || sequence.end->reason == FinishReason::kAborted;
  }
  Update(delta.index);
}

void GenerateAnswer::SetPromptLogprobs(
    std::optional<std::vector<SampledToken>> logprobs) {
  prompt_logprobs_ = std::move(logprobs);
  is_waiting_ = false;
}

void GenerateAnswer::Update(int index) {
  Sequence& sequence = sequences_[index];
  if (sequence.is_ready) return;
  if (!HasChunk(sequence) && !sequence.end.has_value()) return;
  sequence.is_ready = true;
  ready_.push_back(index);
}

void GenerateAnswer::Take(GenerateResponse* response) {
  const int index = ready_.front();
  ready_.pop_front();
  Sequence& sequence = sequences_[index];
  sequence.is_ready = false;
  if (HasChunk(sequence)) {
    TakeChunk(index, response->mutable_chunk());
    Update(index);
  } else {
    TakeComplete(index, response->mutable_complete());
  }
}

template <typename Message>
void GenerateAnswer::Begin(int index, Message* message) {
  message->Clear();
  message->set_index(index);
  message->set_prompt_tokens(num_prompt_tokens_);
  if (std::exchange(sequences_[index].has_begun, true)) return;
  if (prompt_logprobs_.has_value()) {
    AddInputLogprobs(message->mutable_input_logprobs());
  }
}

void GenerateAnswer::TakeChunk(int index, GenerateStreamChunk* chunk) {
  Begin(index, chunk);
  Sequence& sequence = sequences_[index];
  const auto begin = sequence.tokens.begin() + sequence.num_told;
  const size_t count =
      std::min(kMaxChunkTokens, sequence.tokens.size() - sequence.num_told);
  chunk->mutable_token_ids()->Add(begin, begin + count);
  chunk->set_completion_tokens(count);
  sequence.num_told += count;
  if (num_top_logprobs_.has_value()) {
    AddOutputLogprobs(count, &sequence, chunk->mutable_output_logprobs());
  }
}

void GenerateAnswer::TakeComplete(int index, GenerateComplete* message) {
  Begin(index, message);
  Sequence& sequence = sequences_[index];
  const std::vector<int32_t>& tokens = sequence.tokens;
  message->mutable_output_ids()->Add(tokens.begin(), tokens.end());
  message->set_completion_tokens(tokens.size());
  if (num_top_logprobs_.has_value() && !options_.is_streamed) {
    AddOutputLogprobs(tokens.size(), &sequence,
                      message->mutable_output_logprobs());
  }
  const SequenceEnd end = *std::exchange(sequence.end, std::nullopt);
  message->set_finish_reason(FinishWord(end.reason));
  message->set_cached_tokens(end.usage.cached_tokens);
  if (!end.matched_stop.empty()) {
    message->set_matched_stop_str(end.matched_stop);
  } else if (end.reason == FinishReason::kStop && !tokens.empty() &&
             std::binary_search(stop_tokens_.begin(), stop_tokens_.end(),
                                tokens.back())) {
    message->set_matched_token_id(tokens.back());
  }
}

void GenerateAnswer::AddOutputLogprobs(size_t count, Sequence* sequence,
                                       OutputLogProbs* message) const {
  const auto begin = sequence->logprobs.begin();
  for (auto token = begin; token != begin + count; ++token) {
    message->add_token_logprobs(token->logprob);
    message->add_token_ids(token->token);
    if (*num_top_logprobs_ > 0) AddTop(*token, message->add_top_logprobs());
  }
  sequence->logprobs.erase(begin, begin + count);
}

void GenerateAnswer::AddInputLogprobs(InputLogProbs* message) const {
  const bool has_top =
      std::any_of(prompt_logprobs_->begin(), prompt_logprobs_->end(),
                  [](const SampledToken& token) { return token.num_top > 0; });
  for (size_t i = 0; i < prompt_.size(); ++i) {
    auto* logprob = message->add_token_logprobs();
    message->add_token_ids(prompt_[i]);
    TopLogProbs* top = has_top ? message->add_top_logprobs() : nullptr;
    if (i == 0) continue;
    const SampledToken& token = (*prompt_logprobs_)[i - 1];
    logprob->set_value(token.logprob);
    if (has_top) AddTop(token, top);
  }
}

}  // namespace strata::vllm
