#include "tests/load/mix.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/strategy_list.h"

namespace strata {

absl::StatusOr<Mix> Mix::Parse(std::string_view text) {
  Mix mix;
  const auto items =
      SplitStrategies(absl::string_view(text.data(), text.size()));
  for (const std::string& item : items) {
    const size_t colon = item.rfind(':');
    const std::string spec = item.substr(0, colon);
    double weight = 1;
    if (colon != item.npos &&
        (!absl::SimpleAtod(item.substr(colon + 1), &weight) ||
         !std::isfinite(weight) || weight <= 0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", item, "': the weight after ':' must be a number above 0"));
    }
    if (spec.empty() && items.size() > 1) {
      return absl::InvalidArgumentError("a mix holds an empty strategy");
    }
    if (std::count(mix.specs_.begin(), mix.specs_.end(), spec) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", spec, "' stands twice in the mix"));
    }
    mix.specs_.push_back(spec);
    mix.weights_.push_back(weight);
  }
  return mix;
}

int Mix::Draw(std::mt19937_64* random) const {
  return std::discrete_distribution<int>(weights_.begin(),
                                         weights_.end())(*random);
}

}  // namespace strata
