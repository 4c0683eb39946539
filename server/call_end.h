#ifndef SERVER_CALL_END_H_
#define SERVER_CALL_END_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/request.h"

namespace strata {

// When a call that gathers one answer is over: its OnceSubmitted and its OnEnd
// (engine_call.h) have both come, in either order.  Thread-safe.
class CallEnd {
 public:
  // Each is called once.  True: it is the later one, whose caller closes the
  // call and finds all that the other thread has written.
  bool OnceSubmitted(RequestId id) {
    absl::MutexLock lock(&mu_);
    id_ = id;
    is_submitted_ = true;
    return is_ended_;
  }
  bool OnEnd() {
    absl::MutexLock lock(&mu_);
    is_ended_ = true;
    return is_submitted_;
  }

  // 0 before OnceSubmitted, and of a call that was refused.
  RequestId id() const {
    absl::MutexLock lock(&mu_);
    return id_;
  }

 private:
  mutable absl::Mutex mu_;
  RequestId id_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_submitted_ ABSL_GUARDED_BY(mu_) = false;
  bool is_ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace strata

#endif  // SERVER_CALL_END_H_
