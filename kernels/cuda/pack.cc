#include "kernels/cuda/pack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/check.h"
#include "kernels/bf16.h"
#include "kernels/cpu/dequantize.h"
#include "kernels/fp8.h"

namespace strata::cuda {
namespace {

// The quants of a row's blocks and their scales, apart.  The nibbles of a block
// are already as DeviceMatrix has them.
void SplitBlocks(const WeightView& view, int64_t row, std::byte* data,
                 std::byte* scales) {
  const int block_bytes = BlockBytes(view.type);
  const int quant_bytes = block_bytes - int{sizeof(F16)};
  const std::byte* block = view.data + view.StoredRow(row) * view.RowBytes();
  for (int64_t b = 0; b < view.cols / 32; ++b, block += block_bytes) {
    std::memcpy(scales + b * sizeof(F16), block, sizeof(F16));
    std::memcpy(data + b * quant_bytes, block + sizeof(F16), quant_bytes);
  }
}

void RoundRow(const std::vector<float>& values, std::byte* data) {
  for (size_t c = 0; c < values.size(); ++c) {
    const Bf16 v = ToBf16(values[c]);
    std::memcpy(data + c * sizeof(v), &v, sizeof(v));
  }
}

// The least power of two, from 2^-126 on, of which kMaxFp8 times are `largest`
// or more.
float ScaleFor(float largest) {
  if (largest == 0.0f) return 1.0f;
  constexpr int kMaxExponent = 8;  // of kMaxFp8, 1.75 * 2^8
  const int exponent = std::ilogb(largest) - kMaxExponent;
  const bool fits = std::scalbn(largest, -exponent) <= kMaxFp8;
  return std::scalbn(1.0f, std::max(fits ? exponent : exponent + 1, -126));
}

// Plain pointers that do not alias: a vector of bytes could hold what it reads.
void Quantize(const float* __restrict values, int64_t count, float inverse,
              Fp8* __restrict data) {
  for (int64_t c = 0; c < count; ++c) data[c] = ToFp8(values[c] * inverse);
}

// Returns the row's scale.
float QuantizeRow(const std::vector<float>& values, std::byte* data) {
  // Sizes are ordered as their bits are, NaN last.
  int32_t largest_bits = 0;
  for (const float v : values) {
    largest_bits =
        std::max(largest_bits, std::bit_cast<int32_t>(v) & 0x7fffffff);
  }
  const auto largest = std::bit_cast<float>(largest_bits);
  if (!std::isfinite(largest)) {
    std::memset(data, 0, values.size());  // the kernels widen no NaN
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float scale = ScaleFor(largest);
  Quantize(values.data(), static_cast<int64_t>(values.size()),
           /*inverse=*/1.0f / scale, reinterpret_cast<Fp8*>(data));
  return scale;
}

}  // namespace

WeightFormat FormatOf(DType type, bool fp8_weights) {
  switch (type) {
    case DType::kQ8_0:
      return WeightFormat::kQ8_0;
    case DType::kQ4_0:
      return WeightFormat::kQ4_0;
    case DType::kQ4_1:
      return WeightFormat::kBf16;
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      break;
  }
  return fp8_weights ? WeightFormat::kFp8 : WeightFormat::kBf16;
}

int64_t PackedBytes(const WeightView& view, WeightFormat format) {
  return view.rows *
         (RowBytes(format, view.cols) + RowScaleBytes(format, view.cols));
}

void PackRows(const WeightView& view, WeightFormat format, int64_t first,
              int64_t count, std::byte* data, std::byte* scales) {
  STRATA_CHECK(first >= 0 && count >= 0 && first + count <= view.rows);
  STRATA_CHECK(format == FormatOf(view.type, format == WeightFormat::kFp8));
  const bool is_kept = HasBlockScales(format);
  std::vector<float> values(is_kept ? 0 : view.cols);
  for (int64_t i = 0; i < count; ++i) {
    std::byte* row = data + i * RowBytes(format, view.cols);
    std::byte* row_scales = scales + i * RowScaleBytes(format, view.cols);
    if (is_kept) {
      SplitBlocks(view, first + i, row, row_scales);
      continue;
    }
    cpu::DequantizeRow(view, first + i, values.data());
    if (format == WeightFormat::kFp8) {
      const float scale = QuantizeRow(values, row);
      std::memcpy(row_scales, &scale, sizeof(scale));
    } else {
      RoundRow(values, row);
    }
  }
}

}  // namespace strata::cuda
