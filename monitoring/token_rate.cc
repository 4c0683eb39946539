#include "monitoring/token_rate.h"

namespace strata {

void TokenRate::Add(absl::Time now, int64_t count) {
  const int64_t second = absl::ToUnixSeconds(now);
  std::lock_guard lock(mu_);
  Second& slot = seconds_[second % kWindowSeconds];
  if (slot.unix_seconds != second) slot = Second{second, 0};
  slot.count += count;
}

double TokenRate::PerSecond(absl::Time now) const {
  const int64_t second = absl::ToUnixSeconds(now);
  int64_t count = 0;
  std::lock_guard lock(mu_);
  for (const Second& slot : seconds_) {
    if (slot.unix_seconds > second - kWindowSeconds) count += slot.count;
  }
  return static_cast<double>(count) / kWindowSeconds;
}

}  // namespace strata
