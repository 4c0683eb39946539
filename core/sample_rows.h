#ifndef CORE_SAMPLE_ROWS_H_
#define CORE_SAMPLE_ROWS_H_

#include <vector>

#include "core/batch_plan.h"
#include "kernels/sampling.h"

namespace strata {

// *rows gets how each wanted row of the plan is sampled, in order.  They point
// into the sequences.  REQUIRES: where a sequence has penalties, none of its
// tokens is still being sampled.
void MakeSampleRows(const BatchPlan& plan, std::vector<SampleRow>* rows);

}  // namespace strata

#endif  // CORE_SAMPLE_ROWS_H_
