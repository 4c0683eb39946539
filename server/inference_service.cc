#include "server/inference_service.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "core/fit_request.h"
#include "server/failed_stream.h"
#include "server/grpc_status.h"
#include "server/model_info.h"
#include "server/prompt.h"
#include "server/request.h"
#include "server/score_call.h"
#include "server/unary.h"

namespace strata {
namespace {

absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto deadline = context.deadline();
  return deadline == std::chrono::system_clock::time_point::max()
             ? absl::InfiniteFuture()
             : absl::FromChrono(deadline);
}

absl::Status Tokens(const ServedModel& model,
                    const v1::TokenizeRequest& message,
                    v1::TokenizeResponse* response) {
  STRATA_RETURN_IF_ERROR(CheckModelName(model, message.model()));
  STRATA_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                          ToTokens(model, message));
  response->mutable_token_ids()->Add(ids.begin(), ids.end());
  return absl::OkStatus();
}

absl::Status Text(const ServedModel& model,
                  const v1::DetokenizeRequest& message,
                  v1::DetokenizeResponse* response) {
  STRATA_RETURN_IF_ERROR(CheckModelName(model, message.model()));
  if (model.tokenizer == nullptr) {
    return absl::FailedPreconditionError("the model has no tokenizer");
  }
  const std::vector<int32_t> ids(message.token_ids().begin(),
                                 message.token_ids().end());
  STRATA_RETURN_IF_ERROR(
      CheckTokenIds("token_ids", ids, model.engine->limits().vocab_size));
  response->set_text(model.tokenizer->Decode(ids, message.skip_special()));
  return absl::OkStatus();
}

}  // namespace

template <typename Message>
absl::StatusOr<InferenceService::Admitted> InferenceService::Admit(
    const grpc::CallbackServerContext& context, const Message& message) const {
  const auto serving = state_->Serving();
  if (!serving.ok()) {
    if (const ServedModel* model = state_->model()) {
      model->metrics->RecordRejection(Metrics::Rejection::kDraining);
    }
    return serving.status();
  }
  const ServedModel& model = **serving;
  auto request = ToRequest(model, message, DeadlineOf(context));
  if (!request.ok()) {
    model.metrics->RecordRejection(Metrics::Rejection::kInvalid);
    return request.status();
  }
  const absl::Status fits =
      FitRequest(model.engine->limits(), MaxTokensOf(message), &*request);
  if (!fits.ok()) {
    model.metrics->RecordRejection(Metrics::Rejection::kNeverFits);
    return fits;
  }
  return Admitted{&model, *std::move(request)};
}

void InferenceService::LogRefusal(std::string_view method,
                                  const std::string& label,
                                  const absl::Status& status) const {
  if (!options_.logger) return;
  RequestLog log;
  log.method = method;
  log.label = label;
  log.status = status;
  options_.logger(log);
}

grpc::ServerWriteReactor<v1::GenerateResponse>* InferenceService::Generate(
    grpc::CallbackServerContext* context, const v1::GenerateRequest* message) {
  auto admitted = Admit(*context, *message);
  if (!admitted.ok()) {
    LogRefusal("Generate", message->request_id(), admitted.status());
    return new FailedStream<v1::GenerateResponse>(
        ToFinalStatus(admitted.status(), context));
  }
  Engine* engine = admitted->model->engine;
  const auto stream = TokenStream::Create(
      context, options_, StartLog("Generate", admitted->request));
  const RequestId id = engine->Submit(std::move(admitted->request), stream);
  stream->OnceSubmitted(id, [engine, id] { engine->Cancel(id); });
  streams_.Add(stream);
  return stream.get();
}

grpc::ServerUnaryReactor* InferenceService::Score(
    grpc::CallbackServerContext* context, const v1::ScoreRequest* message,
    v1::ScoreResponse* response) {
  auto admitted = Admit(*context, *message);
  if (!admitted.ok()) {
    LogRefusal("Score", "", admitted.status());
    return Answer(context, admitted.status());
  }
  Engine* engine = admitted->model->engine;
  const auto call =
      ScoreCall::Create(context, response, admitted->request.prompt,
                        &options_.logger, StartLog("Score", admitted->request));
  const RequestId id = engine->Submit(std::move(admitted->request), call);
  call->OnceSubmitted(id, [engine, id] { engine->Cancel(id); });
  return call.get();
}

grpc::ServerUnaryReactor* InferenceService::Tokenize(
    grpc::CallbackServerContext* context, const v1::TokenizeRequest* message,
    v1::TokenizeResponse* response) {
  const auto model = state_->Loaded();
  return Answer(context, model.ok() ? Tokens(**model, *message, response)
                                    : model.status());
}

grpc::ServerUnaryReactor* InferenceService::Detokenize(
    grpc::CallbackServerContext* context, const v1::DetokenizeRequest* message,
    v1::DetokenizeResponse* response) {
  const auto model = state_->Loaded();
  return Answer(
      context, model.ok() ? Text(**model, *message, response) : model.status());
}

grpc::ServerUnaryReactor* InferenceService::Abort(
    grpc::CallbackServerContext* context, const v1::AbortRequest* message,
    v1::AbortResponse* response) {
  const auto model = state_->Loaded();
  if (!model.ok()) return Answer(context, model.status());
  // All requests without a label would be meant.
  if (message->request_id().empty()) {
    return Answer(context, absl::InvalidArgumentError("request_id is empty"));
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  (*model)->engine->Abort(message->request_id(), [=](int num_aborted) {
    response->set_aborted(num_aborted);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

grpc::ServerUnaryReactor* InferenceService::GetModel(
    grpc::CallbackServerContext* context, const v1::GetModelRequest* message,
    v1::GetModelResponse* response) {
  const auto model = state_->Loaded();
  if (!model.ok()) return Answer(context, model.status());
  const absl::Status named = CheckModelName(**model, message->model());
  if (named.ok()) *response = DescribeModel(**model);
  return Answer(context, named);
}

grpc::ServerUnaryReactor* InferenceService::GetLoad(
    grpc::CallbackServerContext* context, const v1::GetLoadRequest*,
    v1::GetLoadResponse* response) {
  const auto model = state_->Loaded();
  if (model.ok()) *response = DescribeLoad((*model)->engine->GetLoad());
  return Answer(context, model.status());
}

}  // namespace strata
