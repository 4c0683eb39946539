#include "server/score_call.h"

#include <utility>

#include "server/grpc_status.h"
#include "server/response.h"

namespace strata {

std::shared_ptr<ScoreCall> ScoreCall::Create(
    grpc::CallbackServerContext* context, v1::ScoreResponse* response,
    const std::vector<int32_t>& tokens, const RequestLogger* logger,
    RequestLog log) {
  std::shared_ptr<ScoreCall> call(
      new ScoreCall(context, response, tokens, logger, std::move(log)));
  call->grpc_reference_ = call;
  return call;
}

ScoreCall::ScoreCall(grpc::CallbackServerContext* context,
                     v1::ScoreResponse* response,
                     const std::vector<int32_t>& tokens,
                     const RequestLogger* logger, RequestLog log)
    : context_(context),
      response_(response),
      logger_(logger),
      arrival_(absl::Now()),
      log_(std::move(log)) {
  response_->mutable_token_ids()->Add(tokens.begin(), tokens.end());
}

void ScoreCall::OnceSubmitted(RequestId id,
                              std::function<void()> ask_to_cancel) {
  id_ = id;
  ask_to_cancel_ = std::move(ask_to_cancel);
}

void ScoreCall::OnDelta(SequenceDelta delta) {
  double sum = response_->sum_logprob();
  for (const SampledToken& token : delta.logprobs) {
    ToLogprobs(token, response_->add_logprobs());
    sum += token.logprob;
  }
  response_->set_sum_logprob(sum);
  if (delta.end.has_value()) {
    ToUsage(delta.end->usage, response_->mutable_usage());
    AddUsage(delta.end->usage, &log_);
  }
}

void ScoreCall::OnEnd(absl::Status status) {
  const grpc::Status final_status = ToFinalStatus(status, context_);
  log_.status = std::move(status);
  Finish(final_status);
}

void ScoreCall::OnDone() {
  const std::shared_ptr<ScoreCall> last = std::move(grpc_reference_);
  if (!*logger_) return;
  log_.id = id_;
  log_.total = absl::Now() - arrival_;
  (*logger_)(log_);
}

}  // namespace strata
