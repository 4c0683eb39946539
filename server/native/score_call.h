#ifndef SERVER_NATIVE_SCORE_CALL_H_
#define SERVER_NATIVE_SCORE_CALL_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/strata.pb.h"
#include "server/admission.h"
#include "server/call_end.h"
#include "server/cancel_relay.h"
#include "server/engine_call.h"
#include "server/request_log.h"

namespace strata {

// One Score call: gathers what the engine gives into the one response.  Owned
// by gRPC until OnDone and by the engine until OnEnd, whichever is later.
class ScoreCall final : public grpc::ServerUnaryReactor, public EngineCall {
 public:
  // `admission` outlives the call.
  static std::shared_ptr<ScoreCall> Create(grpc::CallbackServerContext* context,
                                           v1::ScoreResponse* response,
                                           const Admission* admission,
                                           RequestLog log);

  void Admit(const Request& request) override;
  void OnceSubmitted(RequestId id,
                     std::function<void()> ask_to_cancel) override;
  void OnDelta(SequenceDelta delta) override;
  void OnEnd(absl::Status status) override;

 private:
  ScoreCall(grpc::CallbackServerContext* context, v1::ScoreResponse* response,
            const Admission* admission, RequestLog log);

  void OnCancel() override { cancel_.Cancel(); }
  void OnDone() override;

  // These two are gRPC's, valid until OnDone.
  grpc::CallbackServerContext* const context_;
  v1::ScoreResponse* const response_;
  const Admission* const admission_;
  const absl::Time arrival_;
  CancelRelay cancel_;
  std::shared_ptr<ScoreCall> grpc_reference_;  // until OnDone
  RequestLog log_;  // the engine's from Submit to OnEnd
  CallEnd end_;     // which Finish waits for
};

}  // namespace strata

#endif  // SERVER_NATIVE_SCORE_CALL_H_
