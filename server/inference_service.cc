#include "server/inference_service.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "core/fit_request.h"
#include "server/grpc_status.h"
#include "server/model_info.h"
#include "server/prompt.h"
#include "server/received.h"
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

// Texts of more bytes, or ids, take longer than a switch of threads costs.
constexpr size_t kMaxInlineSize = 8 << 10;
constexpr int kNumTextThreads = 2;
constexpr size_t kMaxWaitingTexts = 256;

// `options`, where what was counted in `live` is over once it was logged.
TokenStream::Options CountEnds(TokenStream::Options options, LiveCalls* live) {
  options.logger = [live, logger = options.logger](const RequestLog& log) {
    if (logger) logger(log);
    live->Remove();
  };
  return options;
}

absl::Status CheckInTime(const grpc::CallbackServerContext& context) {
  if (DeadlineOf(context) <= absl::Now()) {
    return absl::DeadlineExceededError("the deadline of the call has passed");
  }
  return context.IsCancelled() ? absl::CancelledError("the client cancelled")
                               : absl::OkStatus();
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

InferenceService::InferenceService(const ServingState* state,
                                   TokenStream::Options options)
    : state_(state),
      logger_(options.logger),
      options_(CountEnds(std::move(options), &live_)),
      workers_(kNumTextThreads, kMaxWaitingTexts) {
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
                       return RefuseMalformed(name);
                     }));
}

absl::Status InferenceService::RefuseMalformed(const char* method) const {
  if (const ServedModel* model = state_->model()) {
    model->metrics->RecordRejection(Metrics::Rejection::kInvalid);
  }
  RequestLog log = StartLog(method, "");
  log.status = MalformedMessage();
  if (logger_) logger_(log);
  return log.status;
}

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

void InferenceService::RunText(const grpc::CallbackServerContext* context,
                               size_t size,
                               std::function<void(const absl::Status&)> work) {
  if (size <= kMaxInlineSize) {
    work(absl::OkStatus());
    return;
  }
  if (workers_.Post([context, work] { work(CheckInTime(*context)); })) return;
  if (const ServedModel* model = state_->model()) {
    model->metrics->RecordRejection(Metrics::Rejection::kQueueFull);
  }
  work(absl::ResourceExhaustedError(absl::StrCat(
      kMaxWaitingTexts, " long texts are waiting; try again later")));
}

template <typename Message, typename Call>
void InferenceService::Begin(const grpc::CallbackServerContext* context,
                             const Message* message,
                             const std::shared_ptr<Call>& call) {
  live_.Add();
  RunText(context, TextBytes(*message),
          [this, context, message, call](const absl::Status& in_time) {
            auto admitted = in_time.ok() ? Admit(*context, *message) : in_time;
            if (!admitted.ok()) {
              call->OnEnd(admitted.status());
              call->OnceSubmitted(0, [] {});
              return;
            }
            call->Admit(admitted->request);
            Engine* engine = admitted->model->engine;
            const RequestId id =
                engine->Submit(std::move(admitted->request), call);
            call->OnceSubmitted(id, [engine, id] { engine->Cancel(id); });
          });
}

grpc::ServerWriteReactor<v1::GenerateResponse>* InferenceService::Generate(
    grpc::CallbackServerContext* context, const v1::GenerateRequest* message) {
  const auto stream = TokenStream::Create(
      context, options_, StartLog("Generate", message->request_id()));
  streams_.Add(stream);
  Begin(context, message, stream);
  return stream.get();
}

grpc::ServerUnaryReactor* InferenceService::Score(
    grpc::CallbackServerContext* context, const v1::ScoreRequest* message,
    v1::ScoreResponse* response) {
  const auto call = ScoreCall::Create(context, response, &options_.logger,
                                      StartLog("Score", ""));
  Begin(context, message, call);
  return call.get();
}

grpc::ServerUnaryReactor* InferenceService::Tokenize(
    grpc::CallbackServerContext* context, const v1::TokenizeRequest* message,
    v1::TokenizeResponse* response) {
  const auto model = state_->Loaded();
  if (!model.ok()) return Answer(context, model.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  RunText(context, TextBytes(*message), [=](const absl::Status& in_time) {
    reactor->Finish(ToFinalStatus(
        in_time.ok() ? Tokens(**model, *message, response) : in_time, context));
  });
  return reactor;
}

grpc::ServerUnaryReactor* InferenceService::Detokenize(
    grpc::CallbackServerContext* context, const v1::DetokenizeRequest* message,
    v1::DetokenizeResponse* response) {
  const auto model = state_->Loaded();
  if (!model.ok()) return Answer(context, model.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  RunText(context, message->token_ids_size(), [=](const absl::Status& in_time) {
    reactor->Finish(ToFinalStatus(
        in_time.ok() ? Text(**model, *message, response) : in_time, context));
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
