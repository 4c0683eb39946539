#include "server/request_strategy.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/quote.h"

namespace strata {
namespace {

absl::Status Invalid(std::string_view field, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("strategy.", std::string(field), ": ", std::string(what)));
}

absl::StatusOr<SharingStrategy> Resolve(const StrategyRegistry& registry,
                                        const std::string& field,
                                        const std::string& spec) {
  auto strategy = registry.Resolve(spec);
  if (strategy.ok()) return strategy;
  const absl::Status& status = strategy.status();
  return absl::Status(status.code(),
                      absl::StrCat("strategy.", field, ": ", status.message()));
}

// `of` is where `before` stands.
absl::Status CheckSubset(const std::string& field,
                         const SharingStrategy& strategy, const std::string& of,
                         const SharingStrategy& before) {
  if (strategy.LeadersSubsetOf(before)) return absl::OkStatus();
  return Invalid(field,
                 absl::StrCat("the leaders of ", Quote(strategy.canonical()),
                              " are not all leaders of ", of, ", ",
                              Quote(before.canonical())));
}

absl::Status AddFloor(const StrategyRegistry& registry, const std::string& spec,
                      Request* request) {
  if (spec.empty()) return absl::OkStatus();
  STRATA_ASSIGN_OR_RETURN(SharingStrategy floor,
                          Resolve(registry, "floor", spec));
  STRATA_RETURN_IF_ERROR(
      CheckSubset("floor", floor, "strategy.spec", request->strategy));
  request->floor_label = registry.LabelOf(floor);
  request->floor = std::move(floor);
  return absl::OkStatus();
}

absl::Status AddSwitch(const StrategyRegistry& registry,
                       const v1::PlannedSwitch& message, Request* request) {
  constexpr uint32_t kMaxPosition = std::numeric_limits<int32_t>::max();
  const size_t index = request->switches.size();
  const std::string field = absl::StrCat("switches[", index, "]");
  const std::string spec_field = absl::StrCat(field, ".spec");
  const std::string position_field = absl::StrCat(field, ".after_generated");
  const uint32_t position = message.after_generated();
  if (position > kMaxPosition) {
    return Invalid(position_field,
                   absl::StrCat(position, ", must be at most ", kMaxPosition));
  }
  // The server's default is no plan.
  if (message.spec().empty()) return Invalid(spec_field, "is empty");
  STRATA_ASSIGN_OR_RETURN(SharingStrategy strategy,
                          Resolve(registry, spec_field, message.spec()));
  if (index == 0) {
    STRATA_RETURN_IF_ERROR(
        CheckSubset(spec_field, strategy, "strategy.spec", request->strategy));
  } else {
    const PlannedSwitch& before = request->switches.back();
    if (static_cast<int32_t>(position) <= before.after_generated) {
      return Invalid(
          position_field,
          absl::StrCat(position, ", must be above ", before.after_generated,
                       ", that of the switch before"));
    }
    STRATA_RETURN_IF_ERROR(CheckSubset(spec_field, strategy,
                                       "the switch before", before.strategy));
  }
  const int label = registry.LabelOf(strategy);
  request->switches.push_back(
      {.after_generated = static_cast<int32_t>(position),
       .strategy = std::move(strategy),
       .strategy_label = label});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Request> RequestWithStrategy(const StrategyRegistry& registry,
                                            const v1::Strategy& message) {
  if (message.switches_size() > kMaxPlannedSwitches) {
    return Invalid("switches",
                   absl::StrCat("has ", message.switches_size(), ", at most ",
                                kMaxPlannedSwitches, " are allowed"));
  }
  STRATA_ASSIGN_OR_RETURN(SharingStrategy strategy,
                          Resolve(registry, "spec", message.spec()));
  Request request(std::move(strategy));
  request.strategy_label = registry.LabelOf(request.strategy);
  STRATA_RETURN_IF_ERROR(AddFloor(registry, message.floor(), &request));
  request.switches.reserve(message.switches_size());
  for (const v1::PlannedSwitch& planned : message.switches()) {
    STRATA_RETURN_IF_ERROR(AddSwitch(registry, planned, &request));
  }
  return request;
}

}  // namespace strata
