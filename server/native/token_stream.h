#ifndef SERVER_NATIVE_TOKEN_STREAM_H_
#define SERVER_NATIVE_TOKEN_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <deque>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/strata.pb.h"
#include "server/request_log.h"
#include "server/response_stream.h"

namespace strata {

// One Generate call: what the engine gives goes to the client.  What waits for
// a slow reader is merged into few responses beyond `max_queued`, so memory is
// bounded by what was generated.
class TokenStream final : public ResponseStream<v1::GenerateResponse> {
 public:
  struct Options {
    size_t max_queued = 64;  // responses; beyond, later ones are merged
    absl::Duration stall_limit = absl::Seconds(60);
    RequestLogger logger;  // may be null
  };

  // `options` outlives the stream.  `log` is completed and written when the
  // call is over.
  static std::shared_ptr<TokenStream> Create(
      grpc::CallbackServerContext* context, const Options& options,
      RequestLog log);

  void Admit(const Request& request) override;
  void OnDelta(SequenceDelta delta) override;

 private:
  TokenStream(grpc::CallbackServerContext* context, const Options& options,
              RequestLog log);

  bool TakeNext(v1::GenerateResponse* response) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Complete(v1::GenerateResponse* response) override;
  void Queue(SequenceDelta delta) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t max_queued_;
  std::deque<SequenceDelta> queue_ ABSL_GUARDED_BY(mu_);
  SequenceDelta taken_;  // from TakeNext to Complete
};

}  // namespace strata

#endif  // SERVER_NATIVE_TOKEN_STREAM_H_
