#ifndef TESTS_LOAD_REPORT_JSON_H_
#define TESTS_LOAD_REPORT_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/load/options.h"
#include "tests/load/report.h"

namespace strata {

// What a report says besides its calls.
struct RunFacts {
  std::string model_id = "";
  int max_concurrent_requests = 0;
  uint64_t kv_bytes_peak = 0;  // used by live requests, as GetLoad was seen
  std::vector<std::string> violations = {};  // invariants that did not hold
};

// The file that --json names: the keys of `vllm bench serve` with their
// meanings, and besides them cancelled, kv_bytes_peak, kv_bytes_mean,
// kv_bytes_full_mean, errors (by code), violations, and by_strategy: for each
// item of the mix an object with the keys that make sense for a part.
std::string ReportJson(const Report& report, const LoadOptions& options,
                       const RunFacts& facts);

}  // namespace strata

#endif  // TESTS_LOAD_REPORT_JSON_H_
