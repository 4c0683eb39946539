#ifndef KERNELS_PARALLEL_RANK_THREADS_H_
#define KERNELS_PARALLEL_RANK_THREADS_H_

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace strata {

// A thread for each rank: what belongs to a thread, as the current device of
// CUDA does, is set there once.
//
// Not thread-safe: one thread calls Run at a time.
class RankThreads {
 public:
  // REQUIRES: num_ranks > 0.
  explicit RankThreads(int num_ranks);
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }

  // Calls work(rank) on every rank's thread; returns when all have returned.
  void Run(absl::FunctionRef<void(int rank)> work);

 private:
  void RunThread(int rank);

  std::mutex mu_;
  std::condition_variable begun_, ended_;
  const absl::FunctionRef<void(int rank)>* work_ = nullptr;
  int run_ = 0;          // counts the calls of Run
  int num_running_ = 0;  // of this run
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace strata

#endif  // KERNELS_PARALLEL_RANK_THREADS_H_
