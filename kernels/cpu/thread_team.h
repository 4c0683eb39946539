#ifndef KERNELS_CPU_THREAD_TEAM_H_
#define KERNELS_CPU_THREAD_TEAM_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/cpu/worker.h"

namespace strata::cpu {

// Threads that run one function together: the caller of Run and num_threads - 1
// of its own.  These spin for some tens of microseconds after a run, so that
// the next one starts without a system call, then sleep.  A team that takes all
// cores pins its threads, each to its core.
//
// Not thread-safe: one thread calls Run at a time.
class ThreadTeam {
 public:
  // REQUIRES: num_threads > 0.
  explicit ThreadTeam(int num_threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }

  // Calls work on every thread and returns when all calls have returned.
  void Run(absl::FunctionRef<void(const Worker&)> work);

 private:
  void RunThread(int id);
  // Returns the number of the run after `last`, once there is one.
  uint32_t AwaitRun(uint32_t last) const;

  // Constant after construction.
  const int size_;
  const bool may_spin_;  // each thread has a core

  SpinBarrier barrier_;
  // Written before run_ rises, read after.
  const absl::FunctionRef<void(const Worker&)>* work_ = nullptr;
  bool stop_ = false;
  alignas(64) std::atomic<uint32_t> run_{0};
  std::vector<std::thread> threads_;
};

}  // namespace strata::cpu

#endif  // KERNELS_CPU_THREAD_TEAM_H_
