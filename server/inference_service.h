#ifndef SERVER_INFERENCE_SERVICE_H_
#define SERVER_INFERENCE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/request.h"
#include "proto/strata.grpc.pb.h"
#include "server/live_calls.h"
#include "server/live_streams.h"
#include "server/request_log.h"
#include "server/serving_state.h"
#include "server/text_workers.h"
#include "server/token_stream.h"

namespace strata {

// The face strata.v1.Inference: validates, submits to the engine, streams.
//
// Thread-safe.  Outlives the grpc::Server that it is registered with; the
// engine must be alive until that is shut down.
class InferenceService final : public v1::Inference::CallbackService {
 public:
  // `state` outlives this.
  InferenceService(const ServingState* state, TokenStream::Options options);

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context,
      const v1::GenerateRequest* message) override;
  grpc::ServerUnaryReactor* Score(grpc::CallbackServerContext* context,
                                  const v1::ScoreRequest* message,
                                  v1::ScoreResponse* response) override;
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const v1::TokenizeRequest* message,
                                     v1::TokenizeResponse* response) override;
  grpc::ServerUnaryReactor* Detokenize(
      grpc::CallbackServerContext* context,
      const v1::DetokenizeRequest* message,
      v1::DetokenizeResponse* response) override;
  grpc::ServerUnaryReactor* Abort(grpc::CallbackServerContext* context,
                                  const v1::AbortRequest* message,
                                  v1::AbortResponse* response) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const v1::GetModelRequest* message,
                                     v1::GetModelResponse* response) override;
  grpc::ServerUnaryReactor* GetLoad(grpc::CallbackServerContext* context,
                                    const v1::GetLoadRequest* message,
                                    v1::GetLoadResponse* response) override;

  // Returns when no call of Generate or Score lives, or after `limit`.
  void WaitForCalls(absl::Duration limit) { live_.WaitForNone(limit); }

 private:
  // A call that may be served, with what serves it.
  struct Admitted {
    const ServedModel* model;
    Request request;
  };
  // Validates and counts a refusal.
  template <typename Message>
  absl::StatusOr<Admitted> Admit(const grpc::CallbackServerContext& context,
                                 const Message& message) const;
  // Admits and submits a call, or refuses it; at once or, where its text is
  // long, later.
  template <typename Message, typename Call>
  void Begin(const grpc::CallbackServerContext* context, const Message* message,
             const std::shared_ptr<Call>& call);
  // Calls `work` once, with an error if it is too late for it: at once for
  // texts of few bytes (or ids), else on another thread.
  void RunText(const grpc::CallbackServerContext* context, size_t size,
               std::function<void(const absl::Status&)> work);
  // Counts and logs a message that cannot be parsed.
  absl::Status RefuseMalformed(const char* method) const;
  template <typename Method>
  void TakeMalformed(int index, const char* name, Method method);

  const ServingState* const state_;
  const RequestLogger logger_;          // may be null
  const TokenStream::Options options_;  // with a logger that counts too
  LiveCalls live_;
  LiveStreams streams_;
  TextWorkers workers_;  // last: uses the others
};

}  // namespace strata

#endif  // SERVER_INFERENCE_SERVICE_H_
