#ifndef KERNELS_CUDA_WEIGHT_FORMAT_H_
#define KERNELS_CUDA_WEIGHT_FORMAT_H_

#include <cstdint>

#include "kernels/dtype.h"

// How a matrix's weights lie in a GPU's memory: row-major, with scales apart
// from them, so that both load aligned.
namespace strata::cuda {

enum class WeightFormat : uint8_t {
  kBf16,
  kQ8_0,  // int8, and nibbles (low: a block's first 16 elements, high: its last
  kQ4_0,  // 16): blocks of kernels/dtype.h, an F16 scale for 32 columns
  kFp8,   // E4M3 (kernels/fp8.h), a float scale for each row: a power of two,
          // or NaN where the row has a weight that is not finite
};

// Whose scales are of blocks of 32 columns, F16.
constexpr bool HasBlockScales(WeightFormat format) {
  return format == WeightFormat::kQ8_0 || format == WeightFormat::kQ4_0;
}

// Of a row's weights.
constexpr int64_t RowBytes(WeightFormat format, int64_t cols) {
  switch (format) {
    case WeightFormat::kBf16:
      return cols * 2;
    case WeightFormat::kQ8_0:
    case WeightFormat::kFp8:
      return cols;
    case WeightFormat::kQ4_0:
      return cols / 2;
  }
  return 0;
}

// Of a row's scales.
constexpr int64_t RowScaleBytes(WeightFormat format, int64_t cols) {
  if (HasBlockScales(format)) return cols / 32 * int64_t{sizeof(F16)};
  return format == WeightFormat::kFp8 ? int64_t{sizeof(float)} : 0;
}

constexpr const char* WeightFormatName(WeightFormat format) {
  switch (format) {
    case WeightFormat::kBf16:
      return "bf16";
    case WeightFormat::kQ8_0:
      return "Q8_0";
    case WeightFormat::kQ4_0:
      return "Q4_0";
    case WeightFormat::kFp8:
      return "fp8";
  }
  return "?";
}

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_WEIGHT_FORMAT_H_
