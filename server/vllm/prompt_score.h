#ifndef SERVER_VLLM_PROMPT_SCORE_H_
#define SERVER_VLLM_PROMPT_SCORE_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/strata.pb.h"
#include "server/admission.h"
#include "server/call_end.h"
#include "server/cancel_relay.h"
#include "server/engine_call.h"
#include "server/request_log.h"

namespace strata::vllm {

// The log-probabilities of a Generate call's prompt: a Score request of its
// own, as generating does not run the positions for them.  Thread-safe.
class PromptScore final : public EngineCall,
                          public std::enable_shared_from_this<PromptScore> {
 public:
  // One for each token but the first, where the status is OK.
  using Done = std::function<void(absl::Status, std::vector<SampledToken>)>;

  // `admission` outlives the call.
  PromptScore(Admission* admission, uint32_t num_top_logprobs);

  // Calls `done` once, perhaps before it returns.  `context` lives until then.
  // Call once.
  void Begin(const grpc::CallbackServerContext* context,
             const std::vector<int32_t>& prompt, const std::string& strategy,
             Done done);
  // At any time, also before Begin.
  void Cancel() { cancel_.Cancel(); }

  void Admit(const Request& request) override { Describe(request, &log_); }
  void OnceSubmitted(RequestId id,
                     std::function<void()> ask_to_cancel) override;
  void OnDelta(SequenceDelta delta) override;
  void OnEnd(absl::Status status) override;

 private:
  void Close();

  Admission* const admission_;
  v1::ScoreRequest message_;
  CancelRelay cancel_;
  absl::Time begin_;
  Done done_;
  std::vector<SampledToken> logprobs_;  // the engine's until OnEnd
  RequestLog log_;                      // the same, but for the id
  CallEnd end_;                         // which Close waits for
};

}  // namespace strata::vllm

#endif  // SERVER_VLLM_PROMPT_SCORE_H_
