#ifndef TESTS_LOAD_DISTURBANCES_H_
#define TESTS_LOAD_DISTURBANCES_H_

#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/load/call_record.h"

namespace strata {

// What clients do to a server besides waiting for answers, as the flags of the
// same names say.  Rates are shares of the calls, each drawn apart.
struct Disturbances {
  double cancel_rate = 0;
  double cancel_within_s = 2;
  double slow_reader_rate = 0;
  double slow_reader_delay_s = 0.1;
  double deadline_rate = 0;
  double deadline_within_s = 2;
  double switch_rate = 0;
  std::vector<std::string> switch_to = {};  // one is drawn for each call
  bool switch_recompute = false;

  // INVALID_ARGUMENT names the flag and what it allows.  REQUIRES: flags are
  // parsed.
  static absl::StatusOr<Disturbances> FromFlags();

  // Draws what happens to `call`, whose max_tokens is set.
  void Draw(std::mt19937_64* random, PlannedCall* call) const;
};

}  // namespace strata

#endif  // TESTS_LOAD_DISTURBANCES_H_
