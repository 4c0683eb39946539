#ifndef CLIENT_INTERRUPT_H_
#define CLIENT_INTERRUPT_H_

#include <signal.h>

#include <functional>
#include <thread>

namespace strata {

// Calls `on_interrupt`, on a thread of its own, at every SIGINT (Ctrl-C) or
// SIGTERM while it lives.  Both signals are blocked in the thread that made it,
// and in those started afterwards, until it dies.
//
// REQUIRES: made before any other thread of the process, gRPC's included.
class InterruptWatcher {
 public:
  explicit InterruptWatcher(std::function<void()> on_interrupt);
  ~InterruptWatcher();
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

 private:
  sigset_t before_;
  std::jthread thread_;
};

}  // namespace strata

#endif  // CLIENT_INTERRUPT_H_
