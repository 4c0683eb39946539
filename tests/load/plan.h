#ifndef TESTS_LOAD_PLAN_H_
#define TESTS_LOAD_PLAN_H_

#include <vector>

#include "proto/strata.pb.h"
#include "tests/load/call_record.h"
#include "tests/load/options.h"
#include "tests/load/workload.h"

namespace strata {

// Every call of a run, in order of arrival.
struct Plan {
  std::vector<PlannedCall> calls;
  // Those that did not fit the model's context as they were drawn or traced.
  int num_cut_prompts = 0;
  int num_cut_outputs = 0;
};

// A function of its arguments alone.  Calls are drawn, or are those of `trace`
// unless it is empty.  They are cut to fit the model's context: at least one
// token of a drawn prompt is its own; of a traced call an output keeps up to
// half of the context, and the prompt the rest.
Plan MakePlan(const LoadOptions& options, const v1::GetModelResponse& model,
              const std::vector<TracedCall>& trace = {});

}  // namespace strata

#endif  // TESTS_LOAD_PLAN_H_
