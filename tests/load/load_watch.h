#ifndef TESTS_LOAD_LOAD_WATCH_H_
#define TESTS_LOAD_LOAD_WATCH_H_

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "client/connection.h"

namespace strata {

// Asks the server for its load ten times a second, and for its metrics page
// every second, on a thread of its own, from construction to Stop.
class LoadWatch {
 public:
  struct Sample {
    double at_s = 0;  // since construction
    int running = 0;
    int waiting = 0;
    uint64_t kv_used_bytes = 0;
    uint64_t kv_cached_bytes = 0;
    double generated_tokens_per_s = 0;
    double resident_bytes = 0;  // of the process; 0: not known
  };
  struct Seen {
    uint64_t kv_bytes_peak = 0;  // used by live requests
    int running_peak = 0;        // sequences resident at once
    double running_mean = 0;     // of all answers
    uint64_t kv_pool_bytes = 0;
    std::vector<Sample> samples = {};  // one a second
  };

  // `connection` outlives this.  `metrics_address`: HOST:PORT of /metrics;
  // empty: not asked.
  LoadWatch(const Connection* connection, std::string metrics_address);

  // Returns what was seen.  Once.
  Seen Stop();

 private:
  void Poll(std::stop_token stop);
  void AddSample(const v1::GetLoadResponse& load);

  const Connection* const connection_;
  const std::string metrics_address_;
  const absl::Time start_;
  // Of the thread until it is joined.
  Seen seen_;
  int64_t num_answers_ = 0;
  std::jthread thread_;
};

// How much resident memory grows over the last half of the samples that know
// it, in bytes, by the straight line that fits them best; 0 where fewer
// than two are left.
double MemoryGrowth(const std::vector<LoadWatch::Sample>& samples);

}  // namespace strata

#endif  // TESTS_LOAD_LOAD_WATCH_H_
