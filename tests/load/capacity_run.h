#ifndef TESTS_LOAD_CAPACITY_RUN_H_
#define TESTS_LOAD_CAPACITY_RUN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "proto/strata.pb.h"
#include "tests/load/capacity.h"
#include "tests/load/options.h"
#include "tests/load/plan.h"
#include "tests/load/stop_button.h"

namespace strata {

// What a strategy can serve within the limits.
struct StrategyCapacity {
  std::string label;  // of the item of the mix
  Capacity capacity;
};

// The calls of one run; of --trace where one is named, whose errors are
// ReadTrace's.
absl::StatusOr<Plan> PlanRun(const LoadOptions& options,
                             const v1::GetModelResponse& model,
                             const Connection& connection);

// Searches for each item of options.mix alone, and says every probe on
// standard error.  Each probe has prompts that no other has had.  Calls that
// fail or are refused are not good; ABORTED: an invariant did not hold, or
// `stop` was pressed.
absl::StatusOr<std::vector<StrategyCapacity>> FindCapacities(
    const LoadOptions& options, const Connection& connection,
    const v1::GetModelResponse& model, StopButton* stop);

// For a terminal: a row for each strategy.
std::string CapacityTable(const std::vector<StrategyCapacity>& found);

// What --json says of a search: model_id, goodput's limits, attainment, and for
// each strategy its rate and every probe.
std::string CapacityJson(const std::vector<StrategyCapacity>& found,
                         const LoadOptions& options,
                         const std::string& model_id);

}  // namespace strata

#endif  // TESTS_LOAD_CAPACITY_RUN_H_
