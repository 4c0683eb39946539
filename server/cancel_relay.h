#ifndef SERVER_CANCEL_RELAY_H_
#define SERVER_CANCEL_RELAY_H_

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace strata {

// A client's cancel on its way to the engine, which may not have the request
// yet.  Thread-safe.
class CancelRelay {
 public:
  // The engine has the request: from now on a cancel calls `ask`, any number of
  // times; an earlier one does now.
  void Connect(std::function<void()> ask) {
    bool asked = false;
    {
      absl::MutexLock lock(&mu_);
      ask_ = std::move(ask);
      asked = asked_;
    }
    if (asked) Cancel();
  }

  void Cancel() {
    std::function<void()> ask;
    {
      absl::MutexLock lock(&mu_);
      asked_ = true;
      ask = ask_;
    }
    if (ask) ask();
  }

 private:
  absl::Mutex mu_;
  bool asked_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> ask_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // SERVER_CANCEL_RELAY_H_
