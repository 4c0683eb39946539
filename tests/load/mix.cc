#include "tests/load/mix.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "client/strategy_list.h"

namespace strata {
namespace {

constexpr double kMaxWeight = 1e9;  // sums of some are finite

absl::StatusOr<Mix::Item> ParseItem(const std::string& text) {
  Mix::Item item;
  const size_t colon = text.rfind(':');
  if (colon != text.npos &&
      (!absl::SimpleAtod(text.substr(colon + 1), &item.weight) ||
       !(item.weight > 0 && item.weight <= kMaxWeight))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "': the weight after ':' must be a number above 0, at most ",
        kMaxWeight));
  }
  item.spec = text.substr(0, colon);
  const size_t arrow = item.spec.find('>');
  if (arrow == item.spec.npos) return item;
  item.floor = item.spec.substr(arrow + 1);
  item.spec.resize(arrow);
  if (item.floor.empty() || item.floor.find('>') != item.floor.npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': one floor must stand after '>'"));
  }
  return item;
}

}  // namespace

std::string Mix::Item::Label() const {
  const std::string name = spec.empty() ? "default" : spec;
  return floor.empty() ? name : absl::StrCat(name, ">", floor);
}

absl::StatusOr<Mix> Mix::Parse(std::string_view text) {
  Mix mix;
  const auto pieces =
      SplitStrategies(absl::string_view(text.data(), text.size()));
  for (const std::string& piece : pieces) {
    STRATA_ASSIGN_OR_RETURN(Item item, ParseItem(piece));
    if (item.spec.empty() && pieces.size() > 1) {
      return absl::InvalidArgumentError("a mix holds an empty strategy");
    }
    const std::vector<std::string> labels = mix.Labels();
    if (std::count(labels.begin(), labels.end(), item.Label()) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", item.Label(), "' stands twice in the mix"));
    }
    mix.items_.push_back(std::move(item));
  }
  return mix;
}

Mix Mix::Of(Item item) {
  Mix mix;
  mix.items_.push_back(std::move(item));
  return mix;
}

std::vector<std::string> Mix::Labels() const {
  std::vector<std::string> labels;
  for (const Item& item : items_) labels.push_back(item.Label());
  return labels;
}

int Mix::Draw(std::mt19937_64* random) const {
  std::vector<double> weights;
  for (const Item& item : items_) weights.push_back(item.weight);
  return std::discrete_distribution<int>(weights.begin(),
                                         weights.end())(*random);
}

}  // namespace strata
