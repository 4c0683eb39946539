#ifndef SERVER_SCORE_CALL_H_
#define SERVER_SCORE_CALL_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/token_sink.h"
#include "proto/strata.pb.h"
#include "server/request_log.h"

namespace strata {

// One Score call: gathers what the engine gives into the one response.  Owned
// by gRPC until OnDone and by the engine until OnEnd, whichever is later.
class ScoreCall final : public grpc::ServerUnaryReactor, public TokenSink {
 public:
  // `logger` outlives the call.  `tokens`: those that are scored.
  static std::shared_ptr<ScoreCall> Create(grpc::CallbackServerContext* context,
                                           v1::ScoreResponse* response,
                                           const std::vector<int32_t>& tokens,
                                           const RequestLogger* logger,
                                           RequestLog log);

  // Before the call is given back to gRPC.  `ask_to_cancel` may be called also
  // after OnEnd.
  void OnceSubmitted(RequestId id, std::function<void()> ask_to_cancel);

  void OnDelta(SequenceDelta delta) override;
  void OnEnd(absl::Status status) override;

 private:
  ScoreCall(grpc::CallbackServerContext* context, v1::ScoreResponse* response,
            const std::vector<int32_t>& tokens, const RequestLogger* logger,
            RequestLog log);

  void OnCancel() override { ask_to_cancel_(); }
  void OnDone() override;

  // These two are gRPC's, valid until OnDone.
  grpc::CallbackServerContext* const context_;
  v1::ScoreResponse* const response_;
  const RequestLogger* const logger_;
  const absl::Time arrival_;
  std::function<void()> ask_to_cancel_;
  std::shared_ptr<ScoreCall> grpc_reference_;  // until OnDone
  RequestId id_ = 0;
  RequestLog log_;  // the engine's until OnEnd
};

}  // namespace strata

#endif  // SERVER_SCORE_CALL_H_
