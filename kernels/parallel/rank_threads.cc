#include "kernels/parallel/rank_threads.h"

#include "base/check.h"

namespace strata {

RankThreads::RankThreads(int num_ranks) {
  STRATA_CHECK(num_ranks > 0);
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads_.emplace_back([this, rank] { RunThread(rank); });
  }
}

RankThreads::~RankThreads() {
  {
    const std::lock_guard lock(mu_);
    stop_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RankThreads::Run(absl::FunctionRef<void(int rank)> work) {
  std::unique_lock lock(mu_);
  work_ = &work;
  num_running_ = size();
  ++run_;
  begun_.notify_all();
  ended_.wait(lock, [this] { return num_running_ == 0; });
}

void RankThreads::RunThread(int rank) {
  std::unique_lock lock(mu_);
  for (int last = 0;; last = run_) {
    begun_.wait(lock, [&] { return run_ != last || stop_; });
    if (stop_) return;
    const absl::FunctionRef<void(int rank)> work = *work_;
    lock.unlock();
    work(rank);
    lock.lock();
    if (--num_running_ == 0) ended_.notify_one();
  }
}

}  // namespace strata
