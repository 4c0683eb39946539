#include "server/vllm/prompt_score.h"

#include <utility>

#include "absl/time/clock.h"

namespace strata::vllm {

PromptScore::PromptScore(Admission* admission, uint32_t num_top_logprobs)
    : admission_(admission), log_(StartLog("vllm.PromptLogprobs", "")) {
  message_.set_top_logprobs(num_top_logprobs);
}

void PromptScore::Begin(const grpc::CallbackServerContext* context,
                        const std::vector<int32_t>& prompt,
                        const std::string& strategy, Done done) {
  begin_ = absl::Now();
  done_ = std::move(done);
  message_.mutable_tokens()->mutable_ids()->Add(prompt.begin(), prompt.end());
  message_.mutable_strategy()->set_spec(strategy);
  admission_->Begin<v1::ScoreRequest>(context, DeadlineOf(*context), &message_,
                                      shared_from_this());
}

void PromptScore::OnceSubmitted(RequestId id,
                                std::function<void()> ask_to_cancel) {
  cancel_.Connect(std::move(ask_to_cancel));
  if (end_.OnceSubmitted(id)) Close();
}

void PromptScore::OnDelta(SequenceDelta delta) {
  logprobs_.insert(logprobs_.end(), delta.logprobs.begin(),
                   delta.logprobs.end());
  if (delta.end.has_value()) AddUsage(delta.end->usage, &log_);
}

void PromptScore::OnEnd(absl::Status status) {
  log_.status = std::move(status);
  if (end_.OnEnd()) Close();
}

void PromptScore::Close() {
  log_.id = end_.id();
  log_.total = absl::Now() - begin_;
  const Done done = std::exchange(done_, nullptr);  // it may hold this
  admission_->logger()(log_);
  done(log_.status, std::move(logprobs_));
}

}  // namespace strata::vllm
