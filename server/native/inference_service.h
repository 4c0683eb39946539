#ifndef SERVER_NATIVE_INFERENCE_SERVICE_H_
#define SERVER_NATIVE_INFERENCE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "absl/time/time.h"
#include "proto/strata.grpc.pb.h"
#include "server/admission.h"
#include "server/live_streams.h"
#include "server/native/token_stream.h"

namespace strata {

// The face strata.v1.Inference.
//
// Thread-safe.  Outlives the grpc::Server that it is registered with; the
// engine must be alive until that is shut down.
class InferenceService final : public v1::Inference::CallbackService {
 public:
  // `admission` outlives this.  A reader that takes nothing for `stall_limit`
  // is cancelled.
  explicit InferenceService(Admission* admission,
                            absl::Duration stall_limit = absl::Seconds(60));

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

 private:
  template <typename Method>
  void TakeMalformed(int index, const char* name, Method method);

  Admission* const admission_;
  const ServingState* const state_;
  const TokenStream::Options options_;
  LiveStreams streams_;
};

}  // namespace strata

#endif  // SERVER_NATIVE_INFERENCE_SERVICE_H_
