#include "server/native/inference_service.h"

#include <memory>
#include <vector>

#include "base/check.h"
#include "server/grpc_status.h"
#include "server/model_info.h"
#include "server/native/score_call.h"
#include "server/prompt.h"
#include "server/received.h"
#include "server/request.h"
#include "server/unary.h"

namespace strata {
namespace {

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

// What became of a call that was answered, if its answer can be sent.
template <typename Response>
absl::Status FitAnswer(const absl::Status& answered, const Response& response,
                       const Admission& admission) {
  return answered.ok() ? admission.CheckAnswerSize(response.ByteSizeLong())
                       : answered;
}

}  // namespace

InferenceService::InferenceService(Admission* admission,
                                   absl::Duration stall_limit)
    : admission_(admission),
      state_(&admission->state()),
      options_{.stall_limit = stall_limit, .logger = admission->logger()} {
  // In the order of the proto.
  TakeMalformed(0, "Generate", &InferenceService::Generate);
  TakeMalformed(1, "Score", &InferenceService::Score);
  TakeMalformed(2, "Tokenize", &InferenceService::Tokenize);
  TakeMalformed(3, "Detokenize", &InferenceService::Detokenize);
  TakeMalformed(4, "Abort", &InferenceService::Abort);
  TakeMalformed(5, "GetModel", &InferenceService::GetModel);
  TakeMalformed(6, "GetLoad", &InferenceService::GetLoad);
}

template <typename Method>
void InferenceService::TakeMalformed(int index, const char* name,
                                     Method method) {
  MarkMethodCallback(index, NewHandler(this, method, [this, name] {
                       return admission_->RefuseMalformed(name);
                     }));
}

grpc::ServerWriteReactor<v1::GenerateResponse>* InferenceService::Generate(
    grpc::CallbackServerContext* context, const v1::GenerateRequest* message) {
  const auto stream = TokenStream::Create(
      context, options_, StartLog("Generate", message->request_id()));
  streams_.Add(stream);
  admission_->Begin<v1::GenerateRequest>(context, DeadlineOf(*context), message,
                                         stream);
  return stream.get();
}

grpc::ServerUnaryReactor* InferenceService::Score(
    grpc::CallbackServerContext* context, const v1::ScoreRequest* message,
    v1::ScoreResponse* response) {
  const auto call =
      ScoreCall::Create(context, response, admission_, StartLog("Score", ""));
  admission_->Begin<v1::ScoreRequest>(context, DeadlineOf(*context), message,
                                      call);
  return call.get();
}

grpc::ServerUnaryReactor* InferenceService::Tokenize(
    grpc::CallbackServerContext* context, const v1::TokenizeRequest* message,
    v1::TokenizeResponse* response) {
  const auto model = state_->Loaded();
  if (!model.ok()) return Answer(context, model.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  admission_->RunText(
      context, TextBytes(*message), [=, this](const absl::Status& in_time) {
        reactor->Finish(ToFinalStatus(
            in_time.ok() ? FitAnswer(Tokens(**model, *message, response),
                                     *response, *admission_)
                         : in_time,
            context));
      });
  return reactor;
}

grpc::ServerUnaryReactor* InferenceService::Detokenize(
    grpc::CallbackServerContext* context, const v1::DetokenizeRequest* message,
    v1::DetokenizeResponse* response) {
  const auto model = state_->Loaded();
  if (!model.ok()) return Answer(context, model.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  admission_->RunText(
      context, message->token_ids_size(),
      [=, this](const absl::Status& in_time) {
        reactor->Finish(ToFinalStatus(
            in_time.ok() ? FitAnswer(Text(**model, *message, response),
                                     *response, *admission_)
                         : in_time,
            context));
      });
  return reactor;
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
