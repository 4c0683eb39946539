#ifndef SERVER_NATIVE_TOKEN_STREAM_H_
#define SERVER_NATIVE_TOKEN_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/strata.pb.h"
#include "server/cancel_relay.h"
#include "server/engine_call.h"
#include "server/live_streams.h"
#include "server/request_log.h"

namespace strata {

// One Generate call: what the engine gives goes to the client, one write at a
// time, then the status.
//
// The engine alone ends a stream: a client's cancel only asks it to.  A slow
// reader never holds the engine up; what waits for it is merged into few
// responses beyond `max_queued`, so memory is bounded by what was generated.
// A reader that takes nothing for `stall_limit` is cancelled.
//
// Owned by gRPC until OnDone and by the engine until OnEnd, whichever is later.
// Thread-safe.
class TokenStream final : public grpc::ServerWriteReactor<v1::GenerateResponse>,
                          public EngineCall,
                          public LiveStream {
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
  void OnceSubmitted(RequestId id,
                     std::function<void()> ask_to_cancel) override;
  void CancelIfStalled(absl::Time now) override;

  void OnDelta(SequenceDelta delta) override;
  void OnEnd(absl::Status status) override;

 private:
  TokenStream(grpc::CallbackServerContext* context, const Options& options,
              RequestLog log);

  void OnWriteDone(bool ok) override;
  void OnCancel() override { cancel_.Cancel(); }
  void OnDone() override;

  // Changes the state under the lock, then starts the one operation that the
  // state allows outside of it; touches no member once that is started, as
  // `this` may be gone.
  template <typename Change>
  void Advance(Change change);
  void Queue(SequenceDelta delta) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  grpc::CallbackServerContext* const context_;  // valid until OnDone
  const Options& options_;
  const absl::Time arrival_;
  CancelRelay cancel_;
  std::shared_ptr<TokenStream> grpc_reference_;  // until OnDone

  absl::Mutex mu_;
  std::deque<SequenceDelta> queue_ ABSL_GUARDED_BY(mu_);
  bool is_writing_ ABSL_GUARDED_BY(mu_) = false;
  bool is_broken_ ABSL_GUARDED_BY(mu_) = false;  // no later write can succeed
  // No Finish, so no OnDone: not submitted yet, or context_ is in use.
  bool is_pinned_ ABSL_GUARDED_BY(mu_) = true;
  absl::Time write_began_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mu_);
  RequestLog log_ ABSL_GUARDED_BY(mu_);
  v1::GenerateResponse response_;  // gRPC's while is_writing_
};

}  // namespace strata

#endif  // SERVER_NATIVE_TOKEN_STREAM_H_
