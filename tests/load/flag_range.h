#ifndef TESTS_LOAD_FLAG_RANGE_H_
#define TESTS_LOAD_FLAG_RANGE_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace strata {

// INVALID_ARGUMENT, with the flag's name, unless low <= value <= high; not a
// number is never within.
inline absl::Status Within(const char* flag, double value, double low,
                           double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, "=", value, ": must be from ", low, " to ", high));
}

}  // namespace strata

#endif  // TESTS_LOAD_FLAG_RANGE_H_
