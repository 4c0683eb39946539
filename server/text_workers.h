#ifndef SERVER_TEXT_WORKERS_H_
#define SERVER_TEXT_WORKERS_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace strata {

// Threads for what takes too long for gRPC's few: to encode and decode long
// texts.
//
// Thread-safe.
class TextWorkers {
 public:
  TextWorkers(int num_threads, size_t max_waiting);
  // Runs what still waits.
  ~TextWorkers();
  TextWorkers(const TextWorkers&) = delete;
  TextWorkers& operator=(const TextWorkers&) = delete;

  // Runs `work` on one of the threads, in the order of the calls; false where
  // `max_waiting` wait already.
  bool Post(std::function<void()> work);

 private:
  void Loop();

  const size_t max_waiting_;
  absl::Mutex mu_;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mu_);
  bool stops_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;  // last: use the others
};

}  // namespace strata

#endif  // SERVER_TEXT_WORKERS_H_
