#ifndef SERVER_PROCESS_STOP_SIGNAL_H_
#define SERVER_PROCESS_STOP_SIGNAL_H_

#include <signal.h>

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace strata {

// SIGTERM, SIGINT and SIGHUP (where it is not ignored), taken by a thread that
// waits for them: nothing runs in a handler.  The first asks to stop; the
// second ends the process at once.
//
// Thread-safe.
class StopSignal {
 public:
  // Blocks these signals in the calling thread and those it starts, and ignores
  // SIGPIPE.  REQUIRES: no other thread runs yet.
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Waits for the first signal, or for Wake.  Returns whether there was a
  // signal.
  bool Wait();
  // Lets the present or the next Wait return.
  void Wake();

 private:
  void Run();

  sigset_t signals_;  // those, and SIGUSR1, which ends the thread
  absl::Mutex mu_;
  bool received_ ABSL_GUARDED_BY(mu_) = false;
  bool returns_ ABSL_GUARDED_BY(mu_) = false;  // Wait does
  std::thread thread_;                         // last: uses the others
};

}  // namespace strata

#endif  // SERVER_PROCESS_STOP_SIGNAL_H_
