#ifndef TESTS_LOAD_REPORT_JSON_H_
#define TESTS_LOAD_REPORT_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/load/load_watch.h"
#include "tests/load/options.h"
#include "tests/load/report.h"

namespace strata {

// What a report says besides its calls.
struct RunFacts {
  std::string model_id = "";
  int max_concurrent_requests = 0;
  LoadWatch::Seen seen = {};                 // by GetLoad, during the run
  std::vector<std::string> violations = {};  // invariants that did not hold
};

// The file that --json names: the keys of `vllm bench serve` with their
// meanings, and besides them shared_prefix_tokens, bypass_prefix_cache,
// cancelled, kv_bytes_peak, running_peak and running_mean (sequences resident
// at once), kv_bytes_mean, kv_bytes_full_mean, cached_tokens and
// prefix_hit_rate (of the prompt tokens), switches, switch_freed_bytes,
// preemptions, ended_under (completed calls by the strategy that they ended
// with), errors (by code), violations, and by_strategy: for each item of the
// mix an object with the keys that make sense for a part.
std::string ReportJson(const Report& report, const LoadOptions& options,
                       const RunFacts& facts);

}  // namespace strata

#endif  // TESTS_LOAD_REPORT_JSON_H_
