#include "tests/load/arrivals.h"

#include <cmath>
#include <random>

namespace strata {

std::vector<double> ArrivalTimes(int num_calls, double rate_per_s,
                                 double burstiness, uint64_t seed) {
  std::vector<double> times(num_calls, 0.0);
  if (std::isinf(rate_per_s)) return times;
  if (std::isinf(burstiness)) {
    for (int i = 0; i < num_calls; ++i) times[i] = i / rate_per_s;
    return times;
  }
  std::mt19937_64 random(seed);
  std::gamma_distribution<double> gap(burstiness,
                                      1.0 / (rate_per_s * burstiness));
  double now = 0;
  for (double& time : times) {
    time = now;
    now += gap(random);
  }
  return times;
}

}  // namespace strata
