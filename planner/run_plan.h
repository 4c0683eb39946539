#ifndef PLANNER_RUN_PLAN_H_
#define PLANNER_RUN_PLAN_H_

#include <string>

#include "absl/status/statusor.h"
#include "planner/plan_flags.h"

namespace strata {

// ./strata plan: reads the model, measures the CPU if that is the device and
// its rates are not given, plans, writes the file of --json, and returns the
// text to show.  Errors are one line.
absl::StatusOr<std::string> RunPlan(const PlanFlags& flags);

}  // namespace strata

#endif  // PLANNER_RUN_PLAN_H_
