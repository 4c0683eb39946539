#ifndef TESTS_LOAD_STOP_BUTTON_H_
#define TESTS_LOAD_STOP_BUTTON_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/load/runner.h"

namespace strata {

// Ctrl-C's way to whichever run there is.
//
// Thread-safe.
class StopButton {
 public:
  // Stops the attached run, and every one to come.
  void Press() {
    absl::MutexLock lock(&mu_);
    pressed_ = true;
    if (runner_ != nullptr) runner_->Stop();
  }

  // `runner` outlives its place here, which ends with the next; may be null.
  void Attach(Runner* runner) {
    absl::MutexLock lock(&mu_);
    runner_ = runner;
    if (pressed_ && runner_ != nullptr) runner_->Stop();
  }

  bool pressed() const {
    absl::MutexLock lock(&mu_);
    return pressed_;
  }

 private:
  mutable absl::Mutex mu_;
  Runner* runner_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool pressed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace strata

#endif  // TESTS_LOAD_STOP_BUTTON_H_
