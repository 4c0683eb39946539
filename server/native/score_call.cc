#include "server/native/score_call.h"

#include <utility>

#include "server/grpc_status.h"
#include "server/native/response.h"

namespace strata {

std::shared_ptr<ScoreCall> ScoreCall::Create(
    grpc::CallbackServerContext* context, v1::ScoreResponse* response,
    const Admission* admission, RequestLog log) {
  std::shared_ptr<ScoreCall> call(
      new ScoreCall(context, response, admission, std::move(log)));
  call->grpc_reference_ = call;
  return call;
}

ScoreCall::ScoreCall(grpc::CallbackServerContext* context,
                     v1::ScoreResponse* response, const Admission* admission,
                     RequestLog log)
    : context_(context),
      response_(response),
      admission_(admission),
      arrival_(absl::Now()),
      log_(std::move(log)) {}

void ScoreCall::Admit(const Request& request) {
  Describe(request, &log_);
  response_->mutable_token_ids()->Add(request.prompt.begin(),
                                      request.prompt.end());
}

void ScoreCall::OnceSubmitted(RequestId id,
                              std::function<void()> ask_to_cancel) {
  cancel_.Connect(std::move(ask_to_cancel));
  if (end_.OnceSubmitted(id)) Finish(ToFinalStatus(log_.status, context_));
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
  log_.status = status.ok()
                    ? admission_->CheckAnswerSize(response_->ByteSizeLong())
                    : std::move(status);
  if (end_.OnEnd()) Finish(ToFinalStatus(log_.status, context_));
}

void ScoreCall::OnDone() {
  const std::shared_ptr<ScoreCall> last = std::move(grpc_reference_);
  log_.id = end_.id();
  log_.total = absl::Now() - arrival_;
  admission_->logger()(log_);
}

}  // namespace strata
