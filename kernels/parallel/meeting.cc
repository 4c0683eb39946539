#include "kernels/parallel/meeting.h"

namespace strata {

uint32_t Meeting::Meet(uint32_t flags) {
  std::unique_lock lock(mu_);
  coming_ |= flags;
  if (++num_came_ == num_ranks_) {
    num_came_ = 0;
    agreed_ = coming_;
    coming_ = 0;
    ++round_;
    all_came_.notify_all();
  } else {
    // The next round cannot end, and change agreed_, without this rank.
    all_came_.wait(
        lock, [this, round = round_] { return round_ != round || has_ended_; });
  }
  return has_ended_ ? kEnded : agreed_;
}

void Meeting::End() {
  const std::lock_guard lock(mu_);
  has_ended_ = true;
  all_came_.notify_all();
}

}  // namespace strata
