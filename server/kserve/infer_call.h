#ifndef SERVER_KSERVE_INFER_CALL_H_
#define SERVER_KSERVE_INFER_CALL_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "server/admission.h"
#include "server/call_end.h"
#include "server/cancel_relay.h"
#include "server/engine_call.h"
#include "server/kserve/infer_answer.h"
#include "server/kserve/infer_request.h"
#include "server/kserve/infer_statistics.h"
#include "server/kserve/proto/grpc_service.pb.h"
#include "server/request_log.h"

namespace strata::kserve {

// One ModelInfer call: gathers what the engine gives into the one response.
// Owned by gRPC until OnDone and by the engine until OnEnd, whichever is later.
class InferCall final : public grpc::ServerUnaryReactor, public EngineCall {
 public:
  // What it works with, all of which outlive it.
  struct Parts {
    Admission* admission;
    InferStatistics* statistics;
  };
  // `message` and `response` are gRPC's, valid until OnDone.  Begins the call.
  static grpc::ServerUnaryReactor* Begin(
      grpc::CallbackServerContext* context,
      const inference::ModelInferRequest* message,
      inference::ModelInferResponse* response, const Parts& parts);

  void Admit(const Request& request) override;
  void OnceSubmitted(RequestId id,
                     std::function<void()> ask_to_cancel) override;
  void OnDelta(SequenceDelta delta) override;
  void OnEnd(absl::Status status) override;

 private:
  InferCall(grpc::CallbackServerContext* context,
            const inference::ModelInferRequest* message,
            inference::ModelInferResponse* response, const Parts& parts);

  absl::Status Parse();
  // OUT_OF_RANGE: the answer is too large.
  absl::Status Answer();
  void Close();
  void OnCancel() override { cancel_.Cancel(); }
  void OnDone() override;

  grpc::CallbackServerContext* const context_;
  const inference::ModelInferRequest* const message_;
  inference::ModelInferResponse* const response_;
  const Parts parts_;
  const absl::Time arrival_;
  CancelRelay cancel_;
  std::shared_ptr<InferCall> grpc_reference_;  // until OnDone
  InferRequest request_;                       // not changed once it is parsed
  InferAnswer answer_;                         // the engine's until OnEnd
  RequestLog log_;                             // the same
  CallEnd end_;                                // which Finish waits for
};

}  // namespace strata::kserve

#endif  // SERVER_KSERVE_INFER_CALL_H_
