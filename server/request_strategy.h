#ifndef SERVER_REQUEST_STRATEGY_H_
#define SERVER_REQUEST_STRATEGY_H_

#include "absl/status/statusor.h"
#include "core/request.h"
#include "core/strategy_registry.h"
#include "proto/strata.pb.h"

namespace strata {

inline constexpr int kMaxPlannedSwitches = 64;

// A request of which no more is known than its strategy, its floor and its
// planned switches.  INVALID_ARGUMENT, by the field's name: what does not parse
// or has leaders that were not leaders before, switches out of order, without a
// spec or more than kMaxPlannedSwitches.  Thread-safe.
absl::StatusOr<Request> RequestWithStrategy(const StrategyRegistry& registry,
                                            const v1::Strategy& message);

}  // namespace strata

#endif  // SERVER_REQUEST_STRATEGY_H_
