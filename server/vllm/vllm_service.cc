#include "server/vllm/vllm_service.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/quote.h"
#include "server/received.h"
#include "server/unary.h"
#include "server/vllm/bundle_stream.h"

namespace strata::vllm {
namespace {

using smg::grpc::common::GetTokenizerChunk;
using smg::grpc::common::GetTokenizerRequest;
using ::vllm::grpc::engine::AbortRequest;
using ::vllm::grpc::engine::AbortResponse;
using ::vllm::grpc::engine::EmbedRequest;
using ::vllm::grpc::engine::EmbedResponse;
using ::vllm::grpc::engine::GenerateRequest;
using ::vllm::grpc::engine::GenerateResponse;
using ::vllm::grpc::engine::GetLoadsRequest;
using ::vllm::grpc::engine::GetLoadsResponse;
using ::vllm::grpc::engine::GetModelInfoRequest;
using ::vllm::grpc::engine::GetModelInfoResponse;
using ::vllm::grpc::engine::GetServerInfoRequest;
using ::vllm::grpc::engine::GetServerInfoResponse;
using ::vllm::grpc::engine::HealthCheckRequest;
using ::vllm::grpc::engine::HealthCheckResponse;

constexpr int kMaxAborts = 4096;  // of one call
constexpr char kNoProfile[] = "the engine has no profiler";

// OK, or why the server is not ready.
absl::Status CheckReady(const ServingState& state) {
  switch (state.health()) {
    case EngineHealth::kGood:
      break;
    case EngineHealth::kStalled:
      return absl::UnavailableError("the engine is stalled");
    case EngineHealth::kDeviceLost:
      return absl::UnavailableError("the engine's device is lost");
  }
  STRATA_RETURN_IF_ERROR(state.Serving().status());
  if (state.phase() == ServingState::Phase::kServing) return absl::OkStatus();
  return absl::UnavailableError("the server is shutting down");
}

absl::Status Check(const AbortRequest& message) {
  if (message.request_ids_size() > kMaxAborts) {
    return absl::InvalidArgumentError(
        absl::StrCat("request_ids has ", message.request_ids_size(),
                     ", at most ", kMaxAborts, " are allowed"));
  }
  // All requests without a label would be meant.
  const auto& ids = message.request_ids();
  if (std::find(ids.begin(), ids.end(), "") != ids.end()) {
    return absl::InvalidArgumentError("request_ids has an empty one");
  }
  return absl::OkStatus();
}

absl::Status Check(const GetLoadsRequest& message) {
  if (message.dp_rank() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("dp_rank is ", message.dp_rank(),
                     ", must be 0: the server runs one copy of the model"));
  }
  for (const std::string& section : message.include()) {
    if (section == "core" || section == "all") continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "include has ", Quote(section), ", the server has core alone"));
  }
  return absl::OkStatus();
}

// Ends a call of Abort when all its requests were told to end.
class AbortCall {
 public:
  AbortCall(grpc::ServerUnaryReactor* reactor) : reactor_(reactor) {}
  ~AbortCall() { reactor_->Finish(grpc::Status::OK); }

 private:
  grpc::ServerUnaryReactor* const reactor_;
};

}  // namespace

VllmService::VllmService(Admission* admission, const EngineFacts& facts,
                         const GenerateCall::Options& options)
    : admission_(admission),
      state_(&admission->state()),
      facts_(facts),
      options_(options),
      started_(absl::Now()) {
  using namespace smg::grpc::common;  // NOLINT: of calls that are refused
  // In the order of the proto.
  TakeMalformed(0, "vllm.Generate", &VllmService::Generate);
  RefuseAll<EmbedRequest, EmbedResponse>(
      1, "Strata serves language models, which give no embeddings");
  TakeMalformed(2, "vllm.HealthCheck", &VllmService::HealthCheck);
  RefuseAll<FlushCacheRequest, FlushCacheResponse>(
      3, "the prefix cache gives its pages back by itself");
  RefuseAll<StartProfileRequest, ProfileResponse>(4, kNoProfile);
  RefuseAll<StopProfileRequest, ProfileResponse>(5, kNoProfile);
  TakeMalformed(6, "vllm.Abort", &VllmService::Abort);
  TakeMalformed(7, "vllm.GetModelInfo", &VllmService::GetModelInfo);
  TakeMalformed(8, "vllm.GetServerInfo", &VllmService::GetServerInfo);
  TakeMalformed(9, "vllm.GetLoads", &VllmService::GetLoads);
  TakeMalformed(10, "vllm.GetTokenizer", &VllmService::GetTokenizer);
  using Events =
      grpc::internal::CallbackServerStreamingHandler<SubscribeKvEventsRequest,
                                                     KvEventBatch>;
  MarkMethodCallback(
      11, new Events([](grpc::CallbackServerContext*,
                        const SubscribeKvEventsRequest*) {
        return new FailedStream<KvEventBatch>(ToGrpcStatus(
            absl::UnimplementedError("the engine tells no KV events")));
      }));
}

template <typename Method>
void VllmService::TakeMalformed(int index, const char* name, Method method) {
  MarkMethodCallback(index, NewHandler(this, method, [this, name] {
                       return admission_->RefuseMalformed(name);
                     }));
}

template <typename Message, typename Response>
void VllmService::RefuseAll(int index, const char* why) {
  MarkMethodCallback(
      index, new grpc::internal::CallbackUnaryHandler<Message, Response>(
                 [why](grpc::CallbackServerContext* context, const Message*,
                       Response*) {
                   return Answer(context, absl::UnimplementedError(why));
                 }));
}

grpc::ServerWriteReactor<GenerateResponse>* VllmService::Generate(
    grpc::CallbackServerContext* context, const GenerateRequest* message) {
  last_generate_us_ = absl::ToUnixMicros(absl::Now());
  const auto call = GenerateCall::Create(context, admission_, options_);
  streams_.Add(call);
  call->Begin(*message);
  return call.get();
}

grpc::ServerUnaryReactor* VllmService::HealthCheck(
    grpc::CallbackServerContext* context, const HealthCheckRequest*,
    HealthCheckResponse* response) {
  const absl::Status ready = CheckReady(*state_);
  response->set_healthy(ready.ok());
  response->set_message(ready.ok() ? "ready" : std::string(ready.message()));
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* VllmService::Abort(
    grpc::CallbackServerContext* context, const AbortRequest* message,
    AbortResponse*) {
  const auto model = state_->Loaded();
  if (!model.ok()) return Answer(context, model.status());
  const absl::Status checked = Check(*message);
  if (!checked.ok()) return Answer(context, checked);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto call = std::make_shared<const AbortCall>(reactor);
  for (const std::string& id : message->request_ids()) {
    (*model)->engine->Abort(id, [call](int) {});
  }
  return reactor;
}

grpc::ServerUnaryReactor* VllmService::GetModelInfo(
    grpc::CallbackServerContext* context, const GetModelInfoRequest*,
    GetModelInfoResponse* response) {
  const auto model = state_->Loaded();
  if (model.ok()) *response = DescribeModel(**model, facts_);
  return Answer(context, model.status());
}

grpc::ServerUnaryReactor* VllmService::GetServerInfo(
    grpc::CallbackServerContext* context, const GetServerInfoRequest*,
    GetServerInfoResponse* response) {
  const auto model = state_->Loaded();
  if (model.ok()) {
    *response = DescribeServer(**model, facts_);
    response->set_last_receive_timestamp(1e-6 * last_generate_us_.load());
    response->set_uptime_seconds(absl::ToDoubleSeconds(absl::Now() - started_));
  }
  return Answer(context, model.status());
}

grpc::ServerUnaryReactor* VllmService::GetLoads(
    grpc::CallbackServerContext* context, const GetLoadsRequest* message,
    GetLoadsResponse* response) {
  const auto model = state_->Loaded();
  if (!model.ok()) return Answer(context, model.status());
  const absl::Status checked = Check(*message);
  if (checked.ok()) *response = DescribeLoads(**model, facts_);
  return Answer(context, checked);
}

absl::StatusOr<std::shared_ptr<const TokenizerBundle>> VllmService::Bundle() {
  STRATA_ASSIGN_OR_RETURN(const ServedModel* model, state_->Loaded());
  if (model->tokenizer == nullptr) {
    return absl::FailedPreconditionError("the model has no tokenizer");
  }
  absl::MutexLock lock(&mu_);
  if (bundle_ == nullptr) {
    STRATA_ASSIGN_OR_RETURN(TokenizerBundle bundle,
                            ReadTokenizerBundle(facts_.model_path));
    bundle_ = std::make_shared<const TokenizerBundle>(std::move(bundle));
  }
  return bundle_;
}

grpc::ServerWriteReactor<GetTokenizerChunk>* VllmService::GetTokenizer(
    grpc::CallbackServerContext* context, const GetTokenizerRequest*) {
  auto bundle = Bundle();
  if (bundle.ok()) return new BundleStream(*std::move(bundle));
  return new FailedStream<GetTokenizerChunk>(
      ToFinalStatus(bundle.status(), context));
}

}  // namespace strata::vllm
