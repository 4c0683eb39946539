#include "server/kserve/infer_call.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/check.h"
#include "server/grpc_status.h"

namespace strata::kserve {

grpc::ServerUnaryReactor* InferCall::Begin(
    grpc::CallbackServerContext* context,
    const inference::ModelInferRequest* message,
    inference::ModelInferResponse* response, const Parts& parts) {
  std::shared_ptr<InferCall> call(
      new InferCall(context, message, response, parts));
  call->grpc_reference_ = call;
  const absl::Status parsed = call->Parse();
  if (!parsed.ok()) {
    parts.admission->Refuse(parsed, call);
    return call.get();
  }
  const absl::Time deadline =
      std::min(DeadlineOf(*context), call->arrival_ + call->request_.timeout);
  parts.admission->Begin(context, deadline, &call->request_.generate, call);
  return call.get();
}

InferCall::InferCall(grpc::CallbackServerContext* context,
                     const inference::ModelInferRequest* message,
                     inference::ModelInferResponse* response,
                     const Parts& parts)
    : context_(context),
      message_(message),
      response_(response),
      parts_(parts),
      arrival_(absl::Now()),
      log_(StartLog("ModelInfer", message->id())) {}

absl::Status InferCall::Parse() {
  STRATA_ASSIGN_OR_RETURN(request_, ToInferRequest(*message_));
  if (request_.is_streamed) {
    // Triton's words.
    return absl::UnimplementedError(
        "ModelInfer RPC doesn't support models with decoupled transaction "
        "policy: use ModelStreamInfer, or set stream to false");
  }
  return absl::OkStatus();
}

void InferCall::Admit(const Request& request) {
  Describe(request, &log_);
  answer_ = InferAnswer(request);
}

void InferCall::OnceSubmitted(RequestId id,
                              std::function<void()> ask_to_cancel) {
  cancel_.Connect(std::move(ask_to_cancel));
  if (end_.OnceSubmitted(id)) Close();
}

void InferCall::OnDelta(SequenceDelta delta) {
  log_.generated_tokens += static_cast<int>(delta.tokens.size());
  if (delta.end.has_value()) AddUsage(delta.end->usage, &log_);
  answer_.Add(std::move(delta));
}

void InferCall::OnEnd(absl::Status status) {
  log_.status = status.ok() ? Answer() : std::move(status);
  if (end_.OnEnd()) Close();
}

absl::Status InferCall::Answer() {
  const ServedModel& model = *parts_.admission->state().model();
  NameResponse(model.name, message_->id(), response_);
  AddOutputs(request_, answer_.Take(), answer_.num_input_tokens(),
             request_.echoes_input ? request_.generate.text() : "",
             model.tokenizer, response_);
  return parts_.admission->CheckAnswerSize(response_->ByteSizeLong());
}

// A client that has its answer finds it in the statistics.
void InferCall::Close() {
  log_.total = absl::Now() - arrival_;
  parts_.statistics->Record(log_);
  Finish(ToFinalStatus(log_.status, context_));
}

void InferCall::OnDone() {
  const std::shared_ptr<InferCall> last = std::move(grpc_reference_);
  log_.id = end_.id();
  log_.total = absl::Now() - arrival_;
  parts_.admission->logger()(log_);
}

}  // namespace strata::kserve
