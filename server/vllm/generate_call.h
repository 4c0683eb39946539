#ifndef SERVER_VLLM_GENERATE_CALL_H_
#define SERVER_VLLM_GENERATE_CALL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admission.h"
#include "server/response_stream.h"
#include "server/vllm/generate_answer.h"
#include "server/vllm/generate_request.h"
#include "server/vllm/prompt_score.h"
#include "server/vllm/proto/vllm_engine.pb.h"

namespace strata::vllm {

// One Generate call, and the scoring of its prompt beside it where that is
// asked for.
class GenerateCall final
    : public ResponseStream<::vllm::grpc::engine::GenerateResponse>,
      public std::enable_shared_from_this<GenerateCall> {
 public:
  struct Options {
    absl::Duration stall_limit = absl::Seconds(60);
  };

  // `admission` outlives the call.
  static std::shared_ptr<GenerateCall> Create(
      grpc::CallbackServerContext* context, Admission* admission,
      const Options& options);
  // Call once.  `message` need not outlive it.
  void Begin(const ::vllm::grpc::engine::GenerateRequest& message);

  void Admit(const Request& request) override;
  void OnDelta(SequenceDelta delta) override;
  void OnEnd(absl::Status status) override;

 private:
  GenerateCall(grpc::CallbackServerContext* context, Admission* admission,
               const Options& options);

  absl::Status Parse(const ::vllm::grpc::engine::GenerateRequest& message);
  void OnPromptScored(absl::Status status, std::vector<SampledToken> logprobs);
  void CancelScore();

  void OnAccepted() override;
  bool TakeNext(::vllm::grpc::engine::GenerateResponse* response) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Complete(
      ::vllm::grpc::engine::GenerateResponse* response) override;
  bool MayFinish() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnCancel() override;

  Admission* const admission_;
  EngineRequest request_;               // not changed once it is parsed
  std::shared_ptr<PromptScore> score_;  // the same; null: not asked for

  GenerateAnswer answer_ ABSL_GUARDED_BY(mu_);
  std::string strategy_ ABSL_GUARDED_BY(mu_);  // canonical, once admitted
  bool is_scoring_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace strata::vllm

#endif  // SERVER_VLLM_GENERATE_CALL_H_
