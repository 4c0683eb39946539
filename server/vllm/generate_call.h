#ifndef SERVER_VLLM_GENERATE_CALL_H_
#define SERVER_VLLM_GENERATE_CALL_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/admission.h"
#include "server/cancel_relay.h"
#include "server/engine_call.h"
#include "server/live_streams.h"
#include "server/request_log.h"
#include "server/vllm/generate_answer.h"
#include "server/vllm/generate_request.h"
#include "server/vllm/prompt_score.h"
#include "server/vllm/proto/vllm_engine.pb.h"

namespace strata::vllm {

// One Generate call.  As in the native face the engine alone ends it, a
// client's cancel only asks it to, one write is under way at a time, and a
// reader that takes nothing for `stall_limit` is cancelled.
//
// Owned by gRPC until OnDone and by the engine until OnEnd, whichever is later.
// Thread-safe.
class GenerateCall final
    : public grpc::ServerWriteReactor<::vllm::grpc::engine::GenerateResponse>,
      public EngineCall,
      public LiveStream,
      public std::enable_shared_from_this<GenerateCall> {
 public:
  struct Options {
    absl::Duration stall_limit = absl::Seconds(60);
  };

  // `admission` and `options` outlive the call.
  static std::shared_ptr<GenerateCall> Create(
      grpc::CallbackServerContext* context, Admission* admission,
      const Options& options);
  // Call once.  `message` need not outlive it.
  void Begin(const ::vllm::grpc::engine::GenerateRequest& message);

  void Admit(const Request& request) override;
  void OnceSubmitted(RequestId id,
                     std::function<void()> ask_to_cancel) override;
  void CancelIfStalled(absl::Time now) override;

  void OnDelta(SequenceDelta delta) override;
  void OnEnd(absl::Status status) override;

 private:
  GenerateCall(grpc::CallbackServerContext* context, Admission* admission,
               const Options& options);

  absl::Status Parse(const ::vllm::grpc::engine::GenerateRequest& message);
  void BeginScore();
  void OnPromptScored(absl::Status status, std::vector<SampledToken> logprobs);
  void CancelScore();
  // Its response cannot be sent: ends the call with `status`.
  void EndTooLarge(const absl::Status& status);
  // The same once the engine has ended, and nothing is written until then.
  void Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // Changes the state under the lock, then starts the one operation that the
  // state allows outside of it; touches no member once that is started, as
  // `this` may be gone.
  template <typename Change>
  void Advance(Change change);

  grpc::CallbackServerContext* const context_;  // valid until OnDone
  Admission* const admission_;
  const Options& options_;
  const absl::Time arrival_;
  CancelRelay cancel_;
  std::shared_ptr<GenerateCall> grpc_reference_;  // until OnDone
  EngineRequest request_;               // not changed once it is parsed
  std::shared_ptr<PromptScore> score_;  // the same; null: not asked for

  absl::Mutex mu_;
  GenerateAnswer answer_ ABSL_GUARDED_BY(mu_);
  std::string strategy_ ABSL_GUARDED_BY(mu_);  // canonical, once admitted
  bool is_scoring_ ABSL_GUARDED_BY(mu_) = false;
  bool is_writing_ ABSL_GUARDED_BY(mu_) = false;
  bool is_broken_ ABSL_GUARDED_BY(mu_) = false;  // nothing more is written
  // No Finish, so no OnDone: not submitted yet, or context_ is in use.
  bool is_pinned_ ABSL_GUARDED_BY(mu_) = true;
  absl::Time write_began_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);  // of what is not the engine's
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mu_);
  RequestLog log_ ABSL_GUARDED_BY(mu_);
  // gRPC's while is_writing_.
  ::vllm::grpc::engine::GenerateResponse response_;
};

}  // namespace strata::vllm

#endif  // SERVER_VLLM_GENERATE_CALL_H_
