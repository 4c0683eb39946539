#ifndef CORE_INBOX_H_
#define CORE_INBOX_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
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
    std::lock_guard lock(mu_);
    if (closed_) return false;
    actions_.push_back(std::move(action));
    posted_.notify_one();
    return true;
  }

  // Swaps what was posted, in order, into *actions (emptied before); waits up
  // to `patience` for the first.
  void Take(absl::Duration patience, std::vector<Action>* actions) {
    actions->clear();
    std::unique_lock lock(mu_);
    posted_.wait_for(lock, absl::ToChronoMicroseconds(patience),
                     [this] { return !actions_.empty(); });
    actions_.swap(*actions);
  }

  void Close() {
    std::lock_guard lock(mu_);
    closed_ = true;
  }

 private:
  // Of std, here and in all of core/: ThreadSanitizer sees what they order.
  std::mutex mu_;
  std::condition_variable posted_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Action> actions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // CORE_INBOX_H_
