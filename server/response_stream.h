#ifndef SERVER_RESPONSE_STREAM_H_
#define SERVER_RESPONSE_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/cancel_relay.h"
#include "server/engine_call.h"
#include "server/grpc_status.h"
#include "server/live_streams.h"
#include "server/request_log.h"

namespace strata {

// A call of one request whose responses go to the client one write at a time,
// then the status.  What they say is the face's: a class of each derives.
//
// The engine alone ends a stream: a client's cancel only asks it to.  A slow
// reader never holds the engine up, and one that takes nothing for the stall
// limit is cancelled.
//
// Owned by gRPC until OnDone and by the engine until OnEnd, whichever is later.
// Thread-safe.
template <typename Response>
class ResponseStream : public grpc::ServerWriteReactor<Response>,
                       public EngineCall,
                       public LiveStream {
 public:
  void OnceSubmitted(RequestId id, std::function<void()> ask_to_cancel) final {
    cancel_.Connect(std::move(ask_to_cancel));
    if (id != 0) OnAccepted();
    // Last: `this` may be gone after it.
    Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      log_.id = id;
      is_pinned_ = false;
    });
  }

  void OnEnd(absl::Status status) override {
    Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      status_ = std::move(status);
    });
  }

  void CancelIfStalled(absl::Time now) final {
    {
      absl::MutexLock lock(&mu_);
      if (!is_writing_ || is_pinned_ || now - write_began_ < stall_limit_) {
        return;
      }
      is_pinned_ = true;  // until TryCancel is over
    }
    // May call OnWriteDone and OnCancel on this thread: not under the lock.
    context_->TryCancel();
    Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { is_pinned_ = false; });
  }

 protected:
  // `logger` may be null and outlives this; `log` is completed and written when
  // the call is over.
  ResponseStream(grpc::CallbackServerContext* context,
                 absl::Duration stall_limit, const RequestLogger& logger,
                 RequestLog log)
      : context_(context),
        log_(std::move(log)),
        stall_limit_(stall_limit),
        logger_(logger),
        arrival_(absl::Now()) {}

  // To be called once, before gRPC has the call.
  void LiveUntilDone(std::shared_ptr<ResponseStream> self) {
    grpc_reference_ = std::move(self);
  }

  // The engine has the request, and a cancel reaches it; nothing is written
  // yet.
  virtual void OnAccepted() {}
  // Takes what is to be said next, into `response` or aside; false: nothing is.
  virtual bool TakeNext(Response* response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Completes the response of what was taken: what need not be under the lock,
  // where the engine would wait for it.  After an error it is not sent, and the
  // call ends with that once the engine has ended it.
  virtual absl::Status Complete(Response* response) = 0;
  // Whether nothing but the engine's end is waited for.
  virtual bool MayFinish() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return true;
  }

  void OnCancel() override { cancel_.Cancel(); }

  // Changes the state under the lock, then starts the one operation that the
  // state allows outside of it; touches no member once that is started, as
  // `this` may be gone.
  template <typename Change>
  void Advance(Change change) {
    mu_.Lock();
    change();
    // OnWriteDone and CancelIfStalled come back here.
    if (is_writing_ || is_pinned_) {
      mu_.Unlock();
      return;
    }
    if (TakeNext(&response_)) {
      is_writing_ = true;
      write_began_ = absl::Now();
      mu_.Unlock();
      Write();
      return;
    }
    if (!status_.has_value() || !MayFinish()) {
      mu_.Unlock();
      return;
    }
    log_.status = failure_.ok() ? *std::move(status_) : failure_;
    status_.reset();
    const grpc::Status status = ToFinalStatus(log_.status, context_);
    mu_.Unlock();
    this->Finish(status);
  }

  // Nothing more is written; the call ends with `status` once the engine has
  // ended it.
  void Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    failure_ = std::move(status);
    is_broken_ = true;
  }

  grpc::CallbackServerContext* const context_;  // valid until OnDone
  CancelRelay cancel_;

  absl::Mutex mu_;
  bool is_broken_ ABSL_GUARDED_BY(mu_) = false;  // nothing more is written
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mu_);  // the engine's
  RequestLog log_ ABSL_GUARDED_BY(mu_);

 private:
  void Write() {
    const absl::Status completed = Complete(&response_);
    if (completed.ok()) {
      this->StartWrite(&response_);
      return;
    }
    OnCancel();
    Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      is_writing_ = false;
      Fail(completed);
    });
  }

  void OnWriteDone(bool ok) final {
    Advance([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      is_writing_ = false;
      is_broken_ = is_broken_ || !ok;
    });
  }

  void OnDone() final {
    const std::shared_ptr<ResponseStream> last = std::move(grpc_reference_);
    if (!logger_) return;
    RequestLog log;
    {
      absl::MutexLock lock(&mu_);
      log = log_;
    }
    log.total = absl::Now() - arrival_;
    logger_(log);
  }

  const absl::Duration stall_limit_;
  const RequestLogger& logger_;
  const absl::Time arrival_;
  std::shared_ptr<ResponseStream> grpc_reference_;  // until OnDone

  bool is_writing_ ABSL_GUARDED_BY(mu_) = false;
  // No Finish, so no OnDone: not submitted yet, or context_ is in use.
  bool is_pinned_ ABSL_GUARDED_BY(mu_) = true;
  absl::Time write_began_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);  // of what is not the engine's
  Response response_;                          // gRPC's while is_writing_
};

}  // namespace strata

#endif  // SERVER_RESPONSE_STREAM_H_
