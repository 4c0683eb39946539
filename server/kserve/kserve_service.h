#ifndef SERVER_KSERVE_KSERVE_SERVICE_H_
#define SERVER_KSERVE_KSERVE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/statusor.h"
#include "server/admission.h"
#include "server/kserve/infer_statistics.h"
#include "server/kserve/infer_stream.h"
#include "server/kserve/proto/grpc_service.grpc.pb.h"
#include "server/live_streams.h"
#include "server/serving_state.h"

namespace strata::kserve {

// The face inference.GRPCInferenceService: the KServe Open Inference Protocol
// with Triton's additions, and the tensors of Triton's vLLM backend.
//
// Thread-safe.  Outlives the grpc::Server that it is registered with; the
// engine must be alive until that is shut down.
class KServeService final
    : public inference::GRPCInferenceService::CallbackService {
 public:
  // `admission` outlives this.
  explicit KServeService(Admission* admission,
                         const InferStream::Options& options = {});

  grpc::ServerUnaryReactor* ServerLive(
      grpc::CallbackServerContext* context,
      const inference::ServerLiveRequest* message,
      inference::ServerLiveResponse* response) override;
  grpc::ServerUnaryReactor* ServerReady(
      grpc::CallbackServerContext* context,
      const inference::ServerReadyRequest* message,
      inference::ServerReadyResponse* response) override;
  grpc::ServerUnaryReactor* ModelReady(
      grpc::CallbackServerContext* context,
      const inference::ModelReadyRequest* message,
      inference::ModelReadyResponse* response) override;
  grpc::ServerUnaryReactor* ServerMetadata(
      grpc::CallbackServerContext* context,
      const inference::ServerMetadataRequest* message,
      inference::ServerMetadataResponse* response) override;
  grpc::ServerUnaryReactor* ModelMetadata(
      grpc::CallbackServerContext* context,
      const inference::ModelMetadataRequest* message,
      inference::ModelMetadataResponse* response) override;
  grpc::ServerUnaryReactor* ModelInfer(
      grpc::CallbackServerContext* context,
      const inference::ModelInferRequest* message,
      inference::ModelInferResponse* response) override;
  grpc::ServerUnaryReactor* ModelConfig(
      grpc::CallbackServerContext* context,
      const inference::ModelConfigRequest* message,
      inference::ModelConfigResponse* response) override;
  grpc::ServerUnaryReactor* ModelStatistics(
      grpc::CallbackServerContext* context,
      const inference::ModelStatisticsRequest* message,
      inference::ModelStatisticsResponse* response) override;
  grpc::ServerUnaryReactor* RepositoryIndex(
      grpc::CallbackServerContext* context,
      const inference::RepositoryIndexRequest* message,
      inference::RepositoryIndexResponse* response) override;

 private:
  using Stream = grpc::ServerBidiReactor<Received<inference::ModelInferRequest>,
                                         inference::ModelStreamInferResponse>;

  // ModelStreamInfer, of messages as they came.
  Stream* BeginStream(grpc::CallbackServerContext* context);
  // What a client names, as it is loaded.
  absl::StatusOr<const ServedModel*> FindModel(
      const std::string& name, const std::string& version) const;
  template <typename Message, typename Response>
  void TakeMalformed(int index, const char* name,
                     grpc::ServerUnaryReactor* (KServeService::*method)(
                         grpc::CallbackServerContext*, const Message*,
                         Response*));
  template <typename Message, typename Response>
  void RefuseAll(int index);

  Admission* const admission_;
  const ServingState* const state_;
  const InferStream::Options options_;
  InferStatistics statistics_;
  LiveStreams streams_;
};

}  // namespace strata::kserve

#endif  // SERVER_KSERVE_KSERVE_SERVICE_H_
