#ifndef TESTS_LOAD_GOODPUT_H_
#define TESTS_LOAD_GOODPUT_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace strata {

// The limits that a call must meet to count as good, in milliseconds.
struct Goodput {
  std::optional<double> ttft_ms;
  std::optional<double> tpot_ms;
  std::optional<double> e2el_ms;

  // Parses "ttft:200,tpot:50,e2el:5000", any of the three; "": none.
  // INVALID_ARGUMENT: another name, a number that is not above 0.
  static absl::StatusOr<Goodput> Parse(std::string_view text);

  // Those that are set, by their names.
  std::map<std::string, double> Limits() const;

  bool any() const { return ttft_ms || tpot_ms || e2el_ms; }
};

}  // namespace strata

#endif  // TESTS_LOAD_GOODPUT_H_
