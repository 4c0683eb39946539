#ifndef TESTS_LOAD_REPORT_JSON_H_
#define TESTS_LOAD_REPORT_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/load/load_watch.h"
#include "tests/load/options.h"
#include "tests/load/plan.h"
#include "tests/load/report.h"

namespace strata {

// What a report says besides its calls.
struct RunFacts {
  std::string model_id = "";
  int max_concurrent_requests = 0;
  LoadWatch::Seen seen = {};       // during the run
  double memory_growth_bytes = 0;  // MemoryGrowth of it
  int num_cut_prompts = 0;         // as in Plan
  int num_cut_outputs = 0;
  std::vector<std::string> violations = {};  // invariants that did not hold
};

// The file that --json names: the keys of `vllm bench serve` with their
// meanings, and besides them shared_prefix_tokens, bypass_prefix_cache,
// cancelled, expired, kv_bytes_peak, running_peak and running_mean (sequences
// resident at once), kv_bytes_mean, kv_bytes_full_mean, cached_tokens and
// prefix_hit_rate (of the prompt tokens), switches, switch_freed_bytes,
// preemptions, ended_under (completed calls by the strategy that they ended
// with), errors (by code), violations, and by_strategy: for each item of the
// mix an object with the keys that make sense for a part.  `samples`: the
// server's load, once a second.  With `records` also `details`, as vLLM's
// --save-detailed has them, a list item for each call in order of the plan:
// input_lens, output_lens, ttfts, itls, latencies, start_times, queue_times
// (seconds), errors, and strategies and outcomes.
std::string ReportJson(const Report& report, const LoadOptions& options,
                       const RunFacts& facts,
                       const std::vector<CallRecord>* records = nullptr);

}  // namespace strata

#endif  // TESTS_LOAD_REPORT_JSON_H_
