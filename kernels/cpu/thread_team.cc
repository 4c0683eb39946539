#include "kernels/cpu/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include "base/check.h"
#include "kernels/cpu/spin.h"

namespace strata::cpu {

namespace {

// The cores this process may use, in rising order.
std::vector<int> AllowedCores() {
  std::vector<int> cores;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

void PinTo(int core, std::thread& thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  // Without the right to do so it runs unpinned.
  (void)pthread_setaffinity_np(thread.native_handle(), sizeof(set), &set);
}

}  // namespace

ThreadTeam::ThreadTeam(int num_threads)
    : size_(num_threads),
      may_spin_(num_threads <= static_cast<int>(AllowedCores().size())),
      barrier_(num_threads, may_spin_) {
  STRATA_CHECK(num_threads > 0);
  const std::vector<int> cores = AllowedCores();
  for (int id = 1; id < size_; ++id) {
    threads_.emplace_back([this, id] { RunThread(id); });
    // The caller's thread stays as it is; the core left over is where the
    // system puts it.  A smaller team would only hinder other processes.
    if (static_cast<int>(cores.size()) == size_) {
      PinTo(cores[id], threads_.back());
    }
  }
}

ThreadTeam::~ThreadTeam() {
  stop_ = true;
  run_.fetch_add(1, std::memory_order_release);
  run_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::Run(absl::FunctionRef<void(const Worker&)> work) {
  if (size_ == 1) return work(Worker{});
  work_ = &work;
  run_.fetch_add(1, std::memory_order_release);
  run_.notify_all();
  work(Worker{.id = 0, .count = size_, .barrier = &barrier_});
  barrier_.Wait();
}

void ThreadTeam::RunThread(int id) {
  const Worker worker{.id = id, .count = size_, .barrier = &barrier_};
  for (uint32_t run = 0;;) {
    run = AwaitRun(run);
    if (stop_) return;
    (*work_)(worker);
    barrier_.Wait();
  }
}

uint32_t ThreadTeam::AwaitRun(uint32_t last) const {
  for (int spins = 0; may_spin_ && spins < kSpinsBeforeYield; ++spins) {
    const uint32_t run = run_.load(std::memory_order_acquire);
    if (run != last) return run;
    SpinPause();
  }
  run_.wait(last, std::memory_order_acquire);
  return run_.load(std::memory_order_acquire);
}

}  // namespace strata::cpu
