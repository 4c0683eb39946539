#include "server/text_workers.h"

#include <utility>

namespace strata {

TextWorkers::TextWorkers(int num_threads, size_t max_waiting)
    : max_waiting_(max_waiting) {
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this] { Loop(); });
  }
}

TextWorkers::~TextWorkers() {
  {
    absl::MutexLock lock(&mu_);
    stops_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

bool TextWorkers::Post(std::function<void()> work) {
  absl::MutexLock lock(&mu_);
  if (waiting_.size() >= max_waiting_) return false;
  waiting_.push_back(std::move(work));
  return true;
}

void TextWorkers::Loop() {
  const auto has_news = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stops_ || !waiting_.empty();
  };
  for (;;) {
    std::function<void()> work;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&has_news));
      if (waiting_.empty()) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

}  // namespace strata
