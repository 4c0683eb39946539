#ifndef SERVER_VLLM_VLLM_SERVICE_H_
#define SERVER_VLLM_VLLM_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/admission.h"
#include "server/live_streams.h"
#include "server/serving_state.h"
#include "server/vllm/engine_description.h"
#include "server/vllm/generate_call.h"
#include "server/vllm/proto/vllm_engine.grpc.pb.h"
#include "server/vllm/tokenizer_bundle.h"

namespace strata::vllm {

// The face vllm.grpc.engine.VllmEngine: what gateways (SMG, llm-d, the Gateway
// API's inference extension) speak with vLLM.
//
// Thread-safe.  Outlives the grpc::Server that it is registered with; the
// engine must be alive until that is shut down.
class VllmService final
    : public ::vllm::grpc::engine::VllmEngine::CallbackService {
 public:
  // `admission` outlives this.
  VllmService(Admission* admission, const EngineFacts& facts,
              const GenerateCall::Options& options = {});

  grpc::ServerWriteReactor<::vllm::grpc::engine::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context,
      const ::vllm::grpc::engine::GenerateRequest* message) override;
  grpc::ServerUnaryReactor* HealthCheck(
      grpc::CallbackServerContext* context,
      const ::vllm::grpc::engine::HealthCheckRequest* message,
      ::vllm::grpc::engine::HealthCheckResponse* response) override;
  grpc::ServerUnaryReactor* Abort(
      grpc::CallbackServerContext* context,
      const ::vllm::grpc::engine::AbortRequest* message,
      ::vllm::grpc::engine::AbortResponse* response) override;
  grpc::ServerUnaryReactor* GetModelInfo(
      grpc::CallbackServerContext* context,
      const ::vllm::grpc::engine::GetModelInfoRequest* message,
      ::vllm::grpc::engine::GetModelInfoResponse* response) override;
  grpc::ServerUnaryReactor* GetServerInfo(
      grpc::CallbackServerContext* context,
      const ::vllm::grpc::engine::GetServerInfoRequest* message,
      ::vllm::grpc::engine::GetServerInfoResponse* response) override;
  grpc::ServerUnaryReactor* GetLoads(
      grpc::CallbackServerContext* context,
      const ::vllm::grpc::engine::GetLoadsRequest* message,
      ::vllm::grpc::engine::GetLoadsResponse* response) override;
  grpc::ServerWriteReactor<smg::grpc::common::GetTokenizerChunk>* GetTokenizer(
      grpc::CallbackServerContext* context,
      const smg::grpc::common::GetTokenizerRequest* message) override;

 private:
  // Read when first asked for.
  absl::StatusOr<std::shared_ptr<const TokenizerBundle>> Bundle();
  template <typename Method>
  void TakeMalformed(int index, const char* name, Method method);
  // `why` is a literal.
  template <typename Message, typename Response>
  void RefuseAll(int index, const char* why);

  Admission* const admission_;
  const ServingState* const state_;
  const EngineFacts facts_;
  const GenerateCall::Options options_;
  const absl::Time started_;
  std::atomic<int64_t> last_generate_us_{0};  // Unix time
  absl::Mutex mu_;
  std::shared_ptr<const TokenizerBundle> bundle_ ABSL_GUARDED_BY(mu_);
  LiveStreams streams_;
};

}  // namespace strata::vllm

#endif  // SERVER_VLLM_VLLM_SERVICE_H_
