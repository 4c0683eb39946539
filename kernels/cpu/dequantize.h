#ifndef KERNELS_CPU_DEQUANTIZE_H_
#define KERNELS_CPU_DEQUANTIZE_H_

#include <cstdint>

#include "kernels/dtype.h"

namespace strata::cpu {

// y[c] = row `row` of the matrix that `view` means (view.StoredRow is applied),
// by the definitions of DType in f32. REQUIRES: 0 <= row < view.rows.
void DequantizeRow(const WeightView& view, int64_t row, float* y /*[cols]*/);

}  // namespace strata::cpu

#endif  // KERNELS_CPU_DEQUANTIZE_H_
