#include "tests/load/goodput.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace strata {

absl::StatusOr<Goodput> Goodput::Parse(std::string_view text) {
  Goodput goodput;
  const std::vector<std::string> items =
      absl::StrSplit(std::string(text), ',', absl::SkipEmpty());
  for (const std::string& item : items) {
    const size_t colon = item.find(':');
    const std::string name = item.substr(0, colon);
    std::optional<double>* limit = name == "ttft"   ? &goodput.ttft_ms
                                   : name == "tpot" ? &goodput.tpot_ms
                                   : name == "e2el" ? &goodput.e2el_ms
                                                    : nullptr;
    double value = 0;
    if (limit == nullptr || colon == item.npos ||
        !absl::SimpleAtod(item.substr(colon + 1), &value) || !(value > 0) ||
        !std::isfinite(value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", item, "': a goodput limit is ttft:MS, tpot:MS or e2el:MS"));
    }
    if (limit->has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", item, "': ", name, " has a limit already"));
    }
    *limit = value;
  }
  return goodput;
}

std::map<std::string, double> Goodput::Limits() const {
  std::map<std::string, double> limits;
  if (ttft_ms) limits["ttft"] = *ttft_ms;
  if (tpot_ms) limits["tpot"] = *tpot_ms;
  if (e2el_ms) limits["e2el"] = *e2el_ms;
  return limits;
}

}  // namespace strata
