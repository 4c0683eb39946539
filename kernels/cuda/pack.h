#ifndef KERNELS_CUDA_PACK_H_
#define KERNELS_CUDA_PACK_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/weight_format.h"
#include "kernels/dtype.h"

// Weights of a file in the layout of DeviceMatrix (ops.h), made on the host row
// by row, so that a matrix can be copied to the device in pieces.
namespace strata::cuda {

// What weights of a file are packed to.  Q8_0 and Q4_0 stay.  Floats (F32, F16,
// BF16) become bf16, or fp8.  Q4_1 becomes bf16 all the same: rounded twice, it
// would be worse than its file.
WeightFormat FormatOf(DType type, bool fp8_weights);

// Of all rows of the view, packed to `format`, with scales.
int64_t PackedBytes(const WeightView& view, WeightFormat format);

// Packs rows first, ..., first + count - 1 of the matrix that `view` means
// (view.StoredRow is applied).  Thread-safe on other outputs.
//
// A row's scale of fp8 is the least power of two, in float's normal range, with
// which its largest weight is at most kMaxFp8: weights keep the precision that
// E4M3 gives them, and scaled ones are bf16 numbers.  A row with a weight that
// is not finite has the scale NaN, and so have its products.
// REQUIRES: format is FormatOf(view.type, ...); 0 <= first; first + count <=
// view.rows.
void PackRows(const WeightView& view, WeightFormat format, int64_t first,
              int64_t count,
              std::byte* data,     // [count, RowBytes]
              std::byte* scales);  // [count, RowScaleBytes]

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_PACK_H_
