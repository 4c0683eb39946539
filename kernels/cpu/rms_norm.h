#ifndef KERNELS_CPU_RMS_NORM_H_
#define KERNELS_CPU_RMS_NORM_H_

#include "kernels/ops.h"

namespace strata::cpu {

// y = norm(x), see RmsNorm; a copy where norm.weight is null.  The order of the
// sum depends on dim alone.  y may be x.
void NormalizeRow(const float* x /*[dim]*/, const RmsNorm& norm, int dim,
                  float* y /*[dim]*/);

}  // namespace strata::cpu

#endif  // KERNELS_CPU_RMS_NORM_H_
