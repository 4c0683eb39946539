#ifndef TESTS_LOAD_OPTIONS_H_
#define TESTS_LOAD_OPTIONS_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tests/load/capacity.h"
#include "tests/load/disturbances.h"
#include "tests/load/goodput.h"
#include "tests/load/lengths.h"
#include "tests/load/mix.h"
#include "tests/load/workload.h"

namespace strata {

// One load run, as the flags of the same names say.
struct LoadOptions {
  int num_prompts;      // of a trace: at most; 0: all
  int concurrency;      // most calls at once; 0: no cap
  double request_rate;  // per second; infinite: closed loop under `concurrency`
  double burstiness;    // infinite: equal gaps
  Mix mix;
  Lengths prompt_lengths;    // after the shared prefix
  int shared_prefix_tokens;  // the same in front of every prompt
  Lengths output_lengths;
  bool text_prompts;  // words instead of random token ids
  bool bypass_prefix_cache;
  bool ignore_eos;
  float temperature;
  double timeout_s;  // deadline of each call; 0: none
  Goodput goodput;
  std::set<std::string> allow_errors;  // codes that are no failure of the run
  uint64_t seed;
  std::string cache_salt = {};
  std::string json_path = "";          // empty: none
  std::string report_folder = "";      // empty: none
  std::string metrics_address = "";    // HOST:PORT; empty: not known
  double duration_s = 0;               // no call starts later; 0: no limit
  double max_memory_growth_bytes = 0;  // of the server; 0: not judged
  Disturbances disturbances = {};
  TraceOptions trace = {};
  CapacityOptions capacity = {};

  // Calls have times of their own, whether or not others have ended.
  bool is_open_loop() const {
    return !std::isinf(request_rate) ||
           (!trace.path.empty() &&
            trace.format == TraceOptions::Format::kMooncake);
  }
};

// INVALID_ARGUMENT names the flag and what it allows.  REQUIRES: flags are
// parsed.
absl::StatusOr<LoadOptions> LoadOptionsFromFlags();

}  // namespace strata

#endif  // TESTS_LOAD_OPTIONS_H_
