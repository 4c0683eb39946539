#ifndef MONITORING_TOKEN_RATE_H_
#define MONITORING_TOKEN_RATE_H_

#include <array>
#include <cstdint>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace strata {

// Tokens per second over the last kWindowSeconds: counts by whole second, the
// running one included.
//
// Thread-safe.
class TokenRate {
 public:
  static constexpr int64_t kWindowSeconds = 10;

  void Add(absl::Time now, int64_t count);
  double PerSecond(absl::Time now) const;

 private:
  struct Second {
    int64_t unix_seconds = 0;
    int64_t count = 0;
  };
  mutable std::mutex mu_;
  std::array<Second, kWindowSeconds> seconds_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // MONITORING_TOKEN_RATE_H_
