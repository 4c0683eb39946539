#ifndef TESTS_LOAD_REPORT_H_
#define TESTS_LOAD_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/load/call_record.h"
#include "tests/load/goodput.h"
#include "tests/load/statistics.h"

namespace strata {

// What a group of calls came to.  Counts of tokens, throughputs and latencies
// are of completed calls, defined as `vllm bench serve` does:
//   TTFT  first response with tokens - start of the call
//   TPOT  (E2EL - TTFT) / (tokens - 1), of calls with 2 tokens or more
//   ITL   gaps between responses with tokens, all calls' together
//   E2EL  end of the stream - start of the call
// The client queue is the time from the intended to the real start; latency
// with it counts what a busy client hides (coordinated omission), and is what
// the limits of Goodput are held against.
struct GroupReport {
  std::string canonical;  // strategy that the first completed call ended with
  int completed = 0;
  int failed = 0;
  int cancelled = 0;
  int expired = 0;  // planned deadlines that passed
  int64_t total_input_tokens = 0;
  int64_t total_output_tokens = 0;
  double duration_s = 0;  // of the run
  int good = 0;           // completed within every limit of Goodput
  Statistics ttft_ms;
  Statistics tpot_ms;
  Statistics itl_ms;
  Statistics e2el_ms;
  Statistics client_queue_time_ms;
  Statistics ttft_including_client_queue_ms;
  Statistics e2el_including_client_queue_ms;
  double kv_bytes_mean = 0;       // a call, at its largest
  double kv_bytes_full_mean = 0;  // the same calls under `full`
  // Of completed calls.
  int64_t total_cached_tokens = 0;  // of the prompts, from the prefix cache
  int64_t switches = 0;
  uint64_t switch_freed_bytes = 0;
  int64_t preemptions = 0;
  std::map<std::string, int> ended_under;  // by the strategy they ended with
  std::map<std::string, int> errors;       // failed calls by code
  // Switches that the client asked Admin for, of all calls.
  int live_switches = 0;
  int live_switches_late = 0;
  std::map<std::string, int> live_switch_errors;  // by code

  // Calls of every end.
  int num_calls() const { return completed + failed + cancelled + expired; }

  double prefix_hit_rate() const {
    return total_input_tokens > 0 ? static_cast<double>(total_cached_tokens) /
                                        static_cast<double>(total_input_tokens)
                                  : 0;
  }

  double PerSecond(double count) const {
    return duration_s > 0 ? count / duration_s : 0;
  }
};

struct Report {
  GroupReport total;
  std::vector<GroupReport> by_strategy;  // in order of the mix
  int64_t max_output_tokens_per_s = 0;   // best whole second
};

// REQUIRES: every record's strategy < num_strategies.
Report MakeReport(const std::vector<CallRecord>& records, int num_strategies,
                  const Goodput& goodput, double duration_s);

}  // namespace strata

#endif  // TESTS_LOAD_REPORT_H_
