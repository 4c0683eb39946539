#ifndef SERVER_TICKER_H_
#define SERVER_TICKER_H_

#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace strata {

// Calls a function again and again, on a thread of its own, until destroyed.
class Ticker {
 public:
  Ticker(absl::Duration period, std::function<void()> tick)
      : thread_([this, period, tick = std::move(tick)] { Run(period, tick); }) {
  }
  // Waits for a call in progress.
  ~Ticker() {
    {
      absl::MutexLock lock(&mu_);
      stops_ = true;
    }
    thread_.join();
  }

 private:
  void Run(absl::Duration period, const std::function<void()>& tick) {
    while (!WaitForStop(period)) tick();
  }
  bool WaitForStop(absl::Duration period) {
    absl::MutexLock lock(&mu_);
    return mu_.AwaitWithTimeout(absl::Condition(&stops_), period);
  }

  absl::Mutex mu_;
  bool stops_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: reads the others
};

}  // namespace strata

#endif  // SERVER_TICKER_H_
