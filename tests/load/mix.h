#ifndef TESTS_LOAD_MIX_H_
#define TESTS_LOAD_MIX_H_

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace strata {

// Which share of the calls runs under which strategy.  Immutable.
class Mix {
 public:
  // Parses "full:0.5,leaders=0,4:0.5" or the same with ';': the weight stands
  // after the last colon, an item without one weighs 1, and weights need not
  // sum to 1.  "" is the server's default strategy alone.  INVALID_ARGUMENT: a
  // weight that is no number above 0, a strategy named twice, an empty item
  // among others.
  static absl::StatusOr<Mix> Parse(std::string_view text);

  const std::vector<std::string>& specs() const { return specs_; }
  const std::vector<double>& weights() const { return weights_; }

  // An index into specs(), each drawn in proportion to its weight.
  int Draw(std::mt19937_64* random) const;

 private:
  std::vector<std::string> specs_;
  std::vector<double> weights_;
};

}  // namespace strata

#endif  // TESTS_LOAD_MIX_H_
