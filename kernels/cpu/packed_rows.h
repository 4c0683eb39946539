#ifndef KERNELS_CPU_PACKED_ROWS_H_
#define KERNELS_CPU_PACKED_ROWS_H_

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/cpu/packed_matrix.h"

namespace strata::cpu {

// What a kernel wants rows of activations as.
enum class RowType : uint8_t {
  kF32,   // [cols], filled up with zeros
  kBF16,  // [cols], rounded to nearest even, filled up with zeros
  kInt8,  // int8 q[cols], then a RowBlock for each 32 of them
};

// 32 activations x are scale * q with q = round(x / scale) and scale = max |x|
// / 127; both are 0 where all |x| < 1e-30, and scale is NaN where an x is not
// finite.
struct RowBlock {
  float scale;
  int32_t minus_sum;  // -(sum of q)
  float scaled_sum;   // scale * sum of q
};

// How a block is quantised, from the bits of its max |x|.
struct RowScale {
  float scale;
  float inverse;
};

inline RowScale RowScaleOf(uint32_t max_bits) {
  const float max = std::bit_cast<float>(max_bits);
  if (max_bits >= 0x7f800000u) {
    return {std::numeric_limits<float>::quiet_NaN(), 0.0f};
  }
  if (max < 1e-30f) return {0.0f, 0.0f};
  return {max / 127.0f, 127.0f / max};
}

inline RowBlock RowBlockOf(RowScale scale, int32_t sum) {
  // Of what is not finite q is arbitrary, and the scale makes it NaN.
  if (std::isnan(scale.scale)) sum = 0;
  return {scale.scale, -sum, scale.scale * static_cast<float>(sum)};
}

// Bytes from one packed row to the next: whole cache lines, and an odd number
// of them, as rows at a distance of a power of two would compete for the same
// lines of a cache.
constexpr int64_t PackedRowStride(RowType type, int64_t cols) {
  int64_t bytes = 0;
  switch (type) {
    case RowType::kF32:
      bytes = (cols + 1) * 4;
      break;
    case RowType::kBF16:
      bytes = (cols + 1) * 2;
      break;
    case RowType::kInt8:
      bytes = cols + cols / 32 * sizeof(RowBlock);
      break;
  }
  return ((bytes + 63) / 64 | 1) * 64;
}

// Rows of activations as kernels read them; owns nothing.
struct PackedRows {
  std::byte* data = nullptr;
  int64_t stride = 0;  // bytes
  int64_t cols = 0;

  std::byte* row(int64_t i) const { return data + i * stride; }
};

}  // namespace strata::cpu

#endif  // KERNELS_CPU_PACKED_ROWS_H_
