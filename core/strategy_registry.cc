#include "core/strategy_registry.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/quote.h"

namespace strata {
namespace {

constexpr size_t kMaxNames = 64;
constexpr size_t kMaxNameBytes = 32;

bool IsName(std::string_view name) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto may_follow = [&](char c) {
    return is_lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kMaxNameBytes && is_lower(name[0]) &&
         std::all_of(name.begin(), name.end(), may_follow) && name != "full";
}

}  // namespace

StrategyRegistry::StrategyRegistry(int num_layers,
                                   SharingStrategy default_strategy)
    : num_layers_(num_layers), default_(std::move(default_strategy)) {
  STRATA_CHECK(default_.num_layers() == num_layers);
  labels_.push_back("other");
  AddLabel(default_);
}

absl::StatusOr<SharingStrategy> StrategyRegistry::Resolve(
    std::string_view spec) const {
  {
    std::lock_guard lock(mu_);
    if (spec.empty()) return default_;
    for (const Named& named : registered_) {
      if (named.name == spec) return named.strategy;
    }
  }
  return SharingStrategy::Parse(spec, num_layers_);
}

absl::Status StrategyRegistry::Register(std::string_view name,
                                        std::string_view spec) {
  if (!IsName(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "strategy name ", Quote(name),
        ": a name is a lower-case letter and up to 31 of a-z 0-9 _ -, and not "
        "\"full\""));
  }
  if (spec.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("strategy name ", Quote(name), ": its spec is empty"));
  }
  STRATA_ASSIGN_OR_RETURN(SharingStrategy strategy, Resolve(spec));
  std::lock_guard lock(mu_);
  const auto known =
      std::find_if(registered_.begin(), registered_.end(),
                   [&](const Named& named) { return named.name == name; });
  if (known != registered_.end()) {
    known->strategy = strategy;
  } else if (registered_.size() < kMaxNames) {
    registered_.push_back({std::string(name), strategy});
  } else {
    return absl::FailedPreconditionError(
        absl::StrCat("strategy name ", Quote(name), ": all ", kMaxNames,
                     " names are taken"));
  }
  AddLabel(strategy);
  return absl::OkStatus();
}

void StrategyRegistry::SetDefault(SharingStrategy strategy) {
  STRATA_CHECK(strategy.num_layers() == num_layers_);
  std::lock_guard lock(mu_);
  default_ = std::move(strategy);
  AddLabel(default_);
}

SharingStrategy StrategyRegistry::default_strategy() const {
  std::lock_guard lock(mu_);
  return default_;
}

std::vector<StrategyRegistry::Named> StrategyRegistry::registered() const {
  std::lock_guard lock(mu_);
  return registered_;
}

int StrategyRegistry::LabelOf(const SharingStrategy& strategy) const {
  std::lock_guard lock(mu_);
  const auto it =
      std::find(labels_.begin(), labels_.end(), strategy.canonical());
  return it == labels_.end() ? 0 : static_cast<int>(it - labels_.begin());
}

std::vector<std::string> StrategyRegistry::labels() const {
  std::lock_guard lock(mu_);
  return labels_;
}

void StrategyRegistry::AddLabel(const SharingStrategy& strategy) {
  if (labels_.size() >= size_t{kMaxLabels}) return;
  const std::string& label = strategy.canonical();
  if (std::find(labels_.begin(), labels_.end(), label) == labels_.end()) {
    labels_.push_back(label);
  }
}

}  // namespace strata
