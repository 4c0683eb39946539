#ifndef TESTS_LOAD_STATISTICS_H_
#define TESTS_LOAD_STATISTICS_H_

#include <vector>

namespace strata {

// What a report says of many measurements of one kind.  All 0 where there are
// none, as `vllm bench serve` prints.
struct Statistics {
  double mean = 0;
  double median = 0;
  double std = 0;  // of the population
  double p50 = 0;
  double p90 = 0;
  double p95 = 0;
  double p99 = 0;
};

// The `percent`-th percentile of `sorted`: linear between the two nearest
// ranks, rank = percent / 100 * (n - 1), which is numpy's default. REQUIRES:
// `sorted` rises and is not empty, 0 <= percent <= 100.
double Percentile(const std::vector<double>& sorted, double percent);

Statistics Describe(std::vector<double> values);

}  // namespace strata

#endif  // TESTS_LOAD_STATISTICS_H_
