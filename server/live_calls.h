#ifndef SERVER_LIVE_CALLS_H_
#define SERVER_LIVE_CALLS_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace strata {

// Counts the calls that are not over.  Thread-safe.
class LiveCalls {
 public:
  // Returns how many there are then.
  int Add() {
    absl::MutexLock lock(&mu_);
    return ++count_;
  }
  void Remove() {
    absl::MutexLock lock(&mu_);
    --count_;
  }
  // Returns when there is none; false if there is one after `limit`.
  bool WaitForNone(absl::Duration limit) {
    const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return count_ == 0;
    };
    absl::MutexLock lock(&mu_);
    return mu_.AwaitWithTimeout(absl::Condition(&none), limit);
  }

 private:
  absl::Mutex mu_;
  int count_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace strata

#endif  // SERVER_LIVE_CALLS_H_
