#include "server/vllm/generate_call.h"

#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "base/check.h"
#include "server/grpc_status.h"
#include "server/vllm/request_metadata.h"

namespace strata::vllm {

using ::vllm::grpc::engine::GenerateRequest;
using ::vllm::grpc::engine::GenerateResponse;

std::shared_ptr<GenerateCall> GenerateCall::Create(
    grpc::CallbackServerContext* context, Admission* admission,
    const Options& options) {
  std::shared_ptr<GenerateCall> call(
      new GenerateCall(context, admission, options));
  call->LiveUntilDone(call);
  return call;
}

GenerateCall::GenerateCall(grpc::CallbackServerContext* context,
                           Admission* admission, const Options& options)
    : ResponseStream(context, options.stall_limit, admission->logger(),
                     RequestLog()),
      admission_(admission) {}

absl::Status GenerateCall::Parse(const GenerateRequest& message) {
  STRATA_ASSIGN_OR_RETURN(const RequestMetadata metadata,
                          ReadMetadata(context_->client_metadata()));
  STRATA_ASSIGN_OR_RETURN(request_, ToEngineRequest(message, metadata));
  const ServedModel* model = admission_->state().model();
  if (model == nullptr) return absl::OkStatus();  // Admission says so
  return CheckStrategy(*model->strategies, request_.generate.strategy());
}

void GenerateCall::Begin(const GenerateRequest& message) {
  const absl::Status parsed = Parse(message);
  const auto& num_prompt_logprobs = request_.num_prompt_logprobs;
  if (num_prompt_logprobs.has_value()) {
    score_ = std::make_shared<PromptScore>(admission_, *num_prompt_logprobs);
  }
  {
    absl::MutexLock lock(&mu_);
    log_ = StartLog("vllm.Generate", request_.generate.request_id());
    answer_ = GenerateAnswer(
        {.is_streamed = request_.is_streamed,
         .has_prompt_logprobs = num_prompt_logprobs.has_value()});
  }
  if (!parsed.ok()) {
    admission_->Refuse(parsed, shared_from_this());
    return;
  }
  admission_->Begin<v1::GenerateRequest>(
      context_, DeadlineOf(*context_), &request_.generate, shared_from_this());
}

void GenerateCall::Admit(const Request& request) {
  const ServedModel& model = *admission_->state().model();
  absl::MutexLock lock(&mu_);
  Describe(request, &log_);
  answer_.Admit(request, model.engine->eos_ids());
  strategy_ = request.strategy.canonical();
  is_scoring_ = score_ != nullptr;
}

bool GenerateCall::TakeNext(GenerateResponse* response) {
  if (is_broken_ || !answer_.HasNews()) return false;
  answer_.Take(response);
  return true;
}

absl::Status GenerateCall::Complete(GenerateResponse* response) {
  return admission_->CheckAnswerSize(response->ByteSizeLong());
}

bool GenerateCall::MayFinish() const { return !is_scoring_; }

void GenerateCall::OnAccepted() {
  if (score_ == nullptr) return;
  std::vector<int32_t> prompt;
  std::string strategy;
  {
    absl::MutexLock lock(&mu_);
    prompt = answer_.prompt();
    strategy = strategy_;
  }
  score_->Begin(context_, prompt, strategy,
                [self = shared_from_this()](
                    absl::Status status, std::vector<SampledToken> logprobs) {
                  self->OnPromptScored(std::move(status), std::move(logprobs));
                });
}

void GenerateCall::OnPromptScored(absl::Status status,
                                  std::vector<SampledToken> logprobs) {
  const bool failed = !status.ok();
  Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    is_scoring_ = false;
    if (status.ok()) {
      answer_.SetPromptLogprobs(std::move(logprobs));
      return;
    }
    answer_.SetPromptLogprobs(std::nullopt);
    // Else the scoring was cancelled because of what the engine says itself.
    if (answer_.is_aborted() || status_.has_value()) return;
    Fail(std::move(status));
  });
  // After Fail: the end that this brings is not the call's own.
  if (failed) cancel_.Cancel();
}

void GenerateCall::CancelScore() {
  if (score_ != nullptr) score_->Cancel();
}

void GenerateCall::OnDelta(SequenceDelta delta) {
  if (delta.end.has_value() && delta.end->reason == FinishReason::kAborted) {
    CancelScore();
  }
  Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    log_.generated_tokens += static_cast<int>(delta.tokens.size());
    if (delta.end.has_value()) AddUsage(delta.end->usage, &log_);
    if (!is_broken_) answer_.Add(std::move(delta));
  });
}

void GenerateCall::OnEnd(absl::Status status) {
  if (!status.ok()) CancelScore();
  ResponseStream::OnEnd(std::move(status));
}

void GenerateCall::OnCancel() {
  ResponseStream::OnCancel();
  CancelScore();
}

}  // namespace strata::vllm
