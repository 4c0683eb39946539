#ifndef TESTS_LOAD_PLAN_H_
#define TESTS_LOAD_PLAN_H_

#include <vector>

#include "proto/strata.pb.h"
#include "tests/load/call_record.h"
#include "tests/load/options.h"

namespace strata {

// Every call of a run, in order of arrival: a function of its arguments alone.
// Lengths are cut so that prompt and output fit the model's context, and at
// least one token of a prompt is its own.
std::vector<PlannedCall> MakePlan(const LoadOptions& options,
                                  const v1::GetModelResponse& model);

}  // namespace strata

#endif  // TESTS_LOAD_PLAN_H_
