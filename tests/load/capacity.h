#ifndef TESTS_LOAD_CAPACITY_H_
#define TESTS_LOAD_CAPACITY_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace strata {

// The search of --find_capacity, as the flags of the same names say.
struct CapacityOptions {
  bool find = false;
  double attainment = 0.95;  // share of the calls that must be good
  double seconds = 20;       // of arrivals, each probe
  double lowest_rate = 0.1;  // per second
  double highest_rate = 1000;
  double precision = 0.1;  // of the rate, relative

  // INVALID_ARGUMENT names the flag and what it allows.  REQUIRES: flags are
  // parsed.
  static absl::StatusOr<CapacityOptions> FromFlags();
};

// One run at one rate.
struct Probe {
  double rate_per_s = 0;
  double attainment = 0;  // good calls / all calls
  double p99_ttft_ms = 0;
  double p99_tpot_ms = 0;
  double output_throughput = 0;
  bool is_confirmation = false;
};

struct Capacity {
  double rate_per_s = 0;      // 0: not even the lowest rate
  bool is_bounded = true;     // false: the highest rate passed as well
  std::vector<Probe> probes;  // in order
};

// Runs `number`, counted from 0, at a rate.
using ProbeRunner =
    std::function<absl::StatusOr<Probe>(double rate_per_s, int number)>;

// The highest rate at which `options.attainment` of the calls are good: doubles
// or halves 1 call/s until one rate passes and one fails, bisects (in the
// logarithm) to `options.precision`, and runs the result a second time.  What
// passes once and fails then has failed, and the search goes on below it.  The
// first error of `run` ends the search.
absl::StatusOr<Capacity> FindCapacity(const CapacityOptions& options,
                                      const ProbeRunner& run);

}  // namespace strata

#endif  // TESTS_LOAD_CAPACITY_H_
