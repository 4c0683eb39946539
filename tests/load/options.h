#ifndef TESTS_LOAD_OPTIONS_H_
#define TESTS_LOAD_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "tests/load/goodput.h"
#include "tests/load/lengths.h"
#include "tests/load/mix.h"

namespace strata {

// One load run, as the flags of the same names say.
struct LoadOptions {
  int num_prompts;
  int concurrency;      // most calls at once; 0: no cap
  double request_rate;  // per second; infinite: closed loop under `concurrency`
  double burstiness;
  Mix mix;
  Lengths prompt_lengths;    // after the shared prefix
  int shared_prefix_tokens;  // the same in front of every prompt
  Lengths output_lengths;
  bool text_prompts;  // words instead of random token ids
  bool bypass_prefix_cache;
  bool ignore_eos;
  float temperature;
  double cancel_rate;  // share of the calls
  double cancel_within_s;
  double timeout_s;  // deadline of each call; 0: none
  Goodput goodput;
  std::set<std::string> allow_errors;  // codes that are no failure of the run
  uint64_t seed;
  std::string cache_salt = {};
  std::string json_path;  // empty: none
};

// INVALID_ARGUMENT names the flag and what it allows.  REQUIRES: flags are
// parsed.
absl::StatusOr<LoadOptions> LoadOptionsFromFlags();

}  // namespace strata

#endif  // TESTS_LOAD_OPTIONS_H_
