#ifndef TESTS_LOAD_LENGTHS_H_
#define TESTS_LOAD_LENGTHS_H_

#include <random>
#include <string_view>

#include "absl/status/statusor.h"

namespace strata {

// A distribution of lengths in tokens, all of them >= 1.  Immutable.
class Lengths {
 public:
  // Parses
  //   128                 always this
  //   uniform:64-256      each with equal chance, both ends included
  //   normal:MEAN,SD      rounded; below 1 becomes 1
  //   lognormal:MEAN,SD   the mean and deviation of the lengths, not of their
  //                       logarithms
  // INVALID_ARGUMENT: another form; numbers out of range.
  static absl::StatusOr<Lengths> Parse(std::string_view text);

  int Draw(std::mt19937_64* random) const;

 private:
  enum class Kind { kUniform, kNormal, kLognormal };

  Lengths(Kind kind, double a, double b) : kind_(kind), a_(a), b_(b) {}

  Kind kind_;
  double a_;  // lowest, mean, mean
  double b_;  // highest, deviation, deviation
};

}  // namespace strata

#endif  // TESTS_LOAD_LENGTHS_H_
