#include "server/kserve/kserve_service.h"

#include <memory>
#include <utility>

#include "base/check.h"
#include "server/kserve/infer_call.h"
#include "server/kserve/infer_request.h"
#include "server/kserve/model_description.h"
#include "server/kserve/unsupported.h"
#include "server/received.h"
#include "server/request.h"
#include "server/unary.h"
#include "server/version.h"

namespace strata::kserve {
namespace {

// Of those that Triton lists, what is there.
constexpr const char* kExtensions[] = {
    "model_configuration", "binary_tensor_data", "parameters", "statistics"};

}  // namespace

KServeService::KServeService(Admission* admission,
                             const InferStream::Options& options)
    : admission_(admission), state_(&admission->state()), options_(options) {
  // In the order of the proto.
  TakeMalformed(0, "ServerLive", &KServeService::ServerLive);
  TakeMalformed(1, "ServerReady", &KServeService::ServerReady);
  TakeMalformed(2, "ModelReady", &KServeService::ModelReady);
  TakeMalformed(3, "ServerMetadata", &KServeService::ServerMetadata);
  TakeMalformed(4, "ModelMetadata", &KServeService::ModelMetadata);
  TakeMalformed(5, "ModelInfer", &KServeService::ModelInfer);
  MarkMethodCallback(6, new grpc::internal::CallbackBidiHandler<
                            Received<inference::ModelInferRequest>,
                            inference::ModelStreamInferResponse>(
                            [this](grpc::CallbackServerContext* context) {
                              return BeginStream(context);
                            }));
  TakeMalformed(7, "ModelConfig", &KServeService::ModelConfig);
  TakeMalformed(8, "ModelStatistics", &KServeService::ModelStatistics);
  TakeMalformed(9, "RepositoryIndex", &KServeService::RepositoryIndex);
  using namespace inference;  // NOLINT: twenty names
  RefuseAll<RepositoryModelLoadRequest, RepositoryModelLoadResponse>(10);
  RefuseAll<RepositoryModelUnloadRequest, RepositoryModelUnloadResponse>(11);
  RefuseAll<SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse>(
      12);
  RefuseAll<SystemSharedMemoryRegisterRequest,
            SystemSharedMemoryRegisterResponse>(13);
  RefuseAll<SystemSharedMemoryUnregisterRequest,
            SystemSharedMemoryUnregisterResponse>(14);
  RefuseAll<CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse>(15);
  RefuseAll<CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse>(
      16);
  RefuseAll<CudaSharedMemoryUnregisterRequest,
            CudaSharedMemoryUnregisterResponse>(17);
  RefuseAll<TraceSettingRequest, TraceSettingResponse>(18);
  RefuseAll<LogSettingsRequest, LogSettingsResponse>(19);
}

template <typename Message, typename Response>
void KServeService::TakeMalformed(
    int index, const char* name,
    grpc::ServerUnaryReactor* (KServeService::*method)(
        grpc::CallbackServerContext*, const Message*, Response*)) {
  MarkMethodCallback(index, NewHandler(this, method, [this, name] {
                       return admission_->RefuseMalformed(name);
                     }));
}

template <typename Message, typename Response>
void KServeService::RefuseAll(int index) {
  MarkMethodCallback(
      index, new grpc::internal::CallbackUnaryHandler<Message, Response>(
                 [](grpc::CallbackServerContext* context, const Message*,
                    Response*) { return Answer(context, Unsupported()); }));
}

absl::StatusOr<const ServedModel*> KServeService::FindModel(
    const std::string& name, const std::string& version) const {
  STRATA_ASSIGN_OR_RETURN(const ServedModel* model, state_->Loaded());
  STRATA_RETURN_IF_ERROR(CheckModelName(*model, name));
  STRATA_RETURN_IF_ERROR(CheckModelVersion(version));
  return model;
}

grpc::ServerUnaryReactor* KServeService::ServerLive(
    grpc::CallbackServerContext* context, const inference::ServerLiveRequest*,
    inference::ServerLiveResponse* response) {
  response->set_live(state_->live());
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* KServeService::ServerReady(
    grpc::CallbackServerContext* context, const inference::ServerReadyRequest*,
    inference::ServerReadyResponse* response) {
  response->set_ready(state_->ready());
  return Answer(context, absl::OkStatus());
}

// As Triton: a model that is not there is not ready, which is no error.
grpc::ServerUnaryReactor* KServeService::ModelReady(
    grpc::CallbackServerContext* context,
    const inference::ModelReadyRequest* message,
    inference::ModelReadyResponse* response) {
  response->set_ready(state_->ready() &&
                      FindModel(message->name(), message->version()).ok());
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* KServeService::ServerMetadata(
    grpc::CallbackServerContext* context,
    const inference::ServerMetadataRequest*,
    inference::ServerMetadataResponse* response) {
  response->set_name("strata");
  response->set_version(strata::kVersion);
  for (const char* extension : kExtensions) {
    response->add_extensions(extension);
  }
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* KServeService::ModelMetadata(
    grpc::CallbackServerContext* context,
    const inference::ModelMetadataRequest* message,
    inference::ModelMetadataResponse* response) {
  const auto model = FindModel(message->name(), message->version());
  if (model.ok()) *response = DescribeMetadata((*model)->name);
  return Answer(context, model.status());
}

grpc::ServerUnaryReactor* KServeService::ModelConfig(
    grpc::CallbackServerContext* context,
    const inference::ModelConfigRequest* message,
    inference::ModelConfigResponse* response) {
  const auto model = FindModel(message->name(), message->version());
  if (model.ok()) *response->mutable_config() = DescribeConfig((*model)->name);
  return Answer(context, model.status());
}

grpc::ServerUnaryReactor* KServeService::ModelStatistics(
    grpc::CallbackServerContext* context,
    const inference::ModelStatisticsRequest* message,
    inference::ModelStatisticsResponse* response) {
  const auto model = FindModel(message->name(), message->version());
  if (model.ok()) {
    inference::ModelStatistics* statistics = response->add_model_stats();
    *statistics = statistics_.Get();
    statistics->set_name((*model)->name);
    statistics->set_version(kModelVersion);
  }
  return Answer(context, model.status());
}

grpc::ServerUnaryReactor* KServeService::RepositoryIndex(
    grpc::CallbackServerContext* context,
    const inference::RepositoryIndexRequest* message,
    inference::RepositoryIndexResponse* response) {
  const ServedModel* model = state_->model();
  const bool is_ready = state_->ready();
  if (model != nullptr && (is_ready || !message->ready())) {
    auto* entry = response->add_models();
    entry->set_name(model->name);
    entry->set_version(kModelVersion);
    entry->set_state(is_ready ? "READY" : "UNAVAILABLE");
    if (!is_ready) entry->set_reason("the server is not ready");
  }
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* KServeService::ModelInfer(
    grpc::CallbackServerContext* context,
    const inference::ModelInferRequest* message,
    inference::ModelInferResponse* response) {
  return InferCall::Begin(context, message, response,
                          {admission_, &statistics_});
}

KServeService::Stream* KServeService::BeginStream(
    grpc::CallbackServerContext* context) {
  const auto stream =
      InferStream::Create(context, options_, {admission_, &statistics_});
  streams_.Add(stream);
  stream->Begin();
  return stream.get();
}

}  // namespace strata::kserve
