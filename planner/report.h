#ifndef PLANNER_REPORT_H_
#define PLANNER_REPORT_H_

#include <string>

#include "planner/capacity_plan.h"
#include "planner/planned_model.h"

namespace strata {

// The plan for a terminal.
std::string PlanText(const PlannedModel& model, const PlanRequest& request,
                     const CapacityPlan& plan);

// The same as JSON: bytes, seconds and tokens per second, unrounded.
std::string PlanJson(const PlannedModel& model, const PlanRequest& request,
                     const CapacityPlan& plan);

}  // namespace strata

#endif  // PLANNER_REPORT_H_
