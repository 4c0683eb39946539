#include "server/process/stop_signal.h"

#include <cstdlib>

namespace strata {

StopSignal::StopSignal() {
  signal(SIGPIPE, SIG_IGN);
  sigemptyset(&signals_);
  for (const int number : {SIGTERM, SIGINT, SIGUSR1}) {
    sigaddset(&signals_, number);
  }
  // A terminal that is gone, unless nohup says that it does not matter.
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&signals_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = std::thread([this] { Run(); });
}

StopSignal::~StopSignal() {
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

bool StopSignal::Wait() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&returns_));
  returns_ = received_;
  return received_;
}

void StopSignal::Wake() {
  absl::MutexLock lock(&mu_);
  returns_ = true;
}

void StopSignal::Run() {
  for (;;) {
    int number = 0;
    sigwait(&signals_, &number);
    if (number == SIGUSR1) return;
    absl::MutexLock lock(&mu_);
    // The shell's code for a process that a signal ended.
    if (received_) std::_Exit(128 + number);
    received_ = returns_ = true;
  }
}

}  // namespace strata
