#ifndef TESTS_LOAD_ARRIVALS_H_
#define TESTS_LOAD_ARRIVALS_H_

#include <cstdint>
#include <vector>

namespace strata {

// When calls are meant to start, in seconds from the beginning, rising: gaps
// are gamma distributed with mean 1 / rate_per_s and shape `burstiness`.  1 is
// a Poisson process, less is burstier, more is more regular, infinity is one
// call each 1 / rate_per_s.  An infinite rate: all at 0, which with a cap on
// concurrency is the closed loop.
//
// REQUIRES: rate_per_s > 0, burstiness > 0.
std::vector<double> ArrivalTimes(int num_calls, double rate_per_s,
                                 double burstiness, uint64_t seed);

}  // namespace strata

#endif  // TESTS_LOAD_ARRIVALS_H_
