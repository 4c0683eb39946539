#ifndef CORE_RATE_WINDOW_H_
#define CORE_RATE_WINDOW_H_

#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace strata {

// How many a second, over the last 10 seconds.  Not thread-safe.
class RateWindow {
 public:
  void Add(int64_t count, absl::Time now) { Bucket(now) += count; }

  // Whole past seconds and the running one; slow to start, so that a single
  // event is no burst.
  double PerSecond(absl::Time now) {
    Bucket(now);
    int64_t sum = 0;
    for (int64_t count : counts_) sum += count;
    return static_cast<double>(sum) / kSeconds;
  }

 private:
  static constexpr int64_t kSeconds = 10;

  // The count of the second of `now`; those of seconds since the last call are
  // emptied.
  int64_t& Bucket(absl::Time now) {
    const int64_t second = absl::ToUnixSeconds(now);
    if (second - latest_ >= kSeconds) {
      counts_.fill(0);
      latest_ = second;
    }
    while (latest_ < second) counts_[++latest_ % kSeconds] = 0;
    return counts_[latest_ % kSeconds];
  }

  int64_t latest_ = 0;  // Unix second
  std::array<int64_t, kSeconds> counts_ = {};
};

}  // namespace strata

#endif  // CORE_RATE_WINDOW_H_
