#ifndef CORE_INBOX_H_
#define CORE_INBOX_H_

#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace strata {

// What other threads ask of the engine thread: actions that it runs between two
// steps.
//
// Thread-safe; Take only by the engine thread.
class Inbox {
 public:
  using Action = std::function<void()>;

  // Returns false, and drops the action, after Close.
  bool Post(Action action) {
    absl::MutexLock lock(&mu_);
    if (closed_) return false;
    actions_.push_back(std::move(action));
    return true;
  }

  // Swaps what was posted, in order, into *actions (emptied before); waits for
  // the first until `deadline`.
  void Take(absl::Time deadline, std::vector<Action>* actions) {
    actions->clear();
    absl::MutexLock lock(&mu_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return !actions_.empty();
    };
    mu_.AwaitWithDeadline(absl::Condition(&ready), deadline);
    actions_.swap(*actions);
  }

  void Close() {
    absl::MutexLock lock(&mu_);
    closed_ = true;
  }

 private:
  absl::Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Action> actions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // CORE_INBOX_H_
