#include "client/interrupt.h"

#include <time.h>

#include <utility>

namespace strata {
namespace {

sigset_t Interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

InterruptWatcher::InterruptWatcher(std::function<void()> on_interrupt) {
  const sigset_t interrupts = Interrupts();
  pthread_sigmask(SIG_BLOCK, &interrupts, &before_);
  thread_ = std::jthread(
      [interrupts, on_interrupt = std::move(on_interrupt)](std::stop_token st) {
        // Wakes up to see whether to stop: sigtimedwait knows no stop token.
        const timespec period = {.tv_sec = 0, .tv_nsec = 20'000'000};
        while (!st.stop_requested()) {
          if (sigtimedwait(&interrupts, nullptr, &period) > 0) on_interrupt();
        }
      });
}

InterruptWatcher::~InterruptWatcher() {
  thread_.request_stop();
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace strata
