#ifndef KERNELS_CUDA_PACK_H_
#define KERNELS_CUDA_PACK_H_

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

// Weights of a file in the layout of DeviceMatrix (ops.h), made on the host row
// by row, so that a matrix can be copied to the device in pieces.
namespace strata::cuda {

// What a view is packed to: Q8_0 and Q4_0 stay, the others become bf16.
struct PackedFormat {
  DType type = DType::kBF16;
  int64_t row_bytes = 0;   // of data
  int64_t row_scales = 0;  // 0 for bf16
};
PackedFormat PackedFormatOf(const WeightView& view);

// Of all rows of the view, packed.
int64_t PackedBytes(const WeightView& view);

// Packs rows first, ..., first + count - 1 of the matrix that `view` means
// (view.StoredRow is applied).  Thread-safe on other outputs.
// REQUIRES: 0 <= first, first + count <= view.rows.
void PackRows(const WeightView& view, int64_t first, int64_t count,
              std::byte* data,  // [count, row_bytes]
              F16* scales);     // [count, row_scales]; null where that is 0

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_PACK_H_
