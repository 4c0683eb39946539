#include "kernels/cpu/dequantize.h"

#include <bit>
#include <cstddef>
#include <cstring>

#include "base/check.h"
#include "kernels/cpu/half.h"

namespace strata::cpu {
namespace {

// Rows of a file need not be aligned.
uint16_t LoadU16(const std::byte* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

float LoadHalf(const std::byte* p) { return HalfToFloat(LoadU16(p)); }

// The 32 nibbles at q: low ones are elements 0..15, high ones 16..31.
void UnpackNibbles(const std::byte* q, float* y /*[32]*/) {
  for (int i = 0; i < 16; ++i) {
    const auto pair = static_cast<uint8_t>(q[i]);
    y[i] = static_cast<float>(pair & 15);
    y[i + 16] = static_cast<float>(pair >> 4);
  }
}

void DequantizeBlock(DType type, const std::byte* block, float* y /*[32]*/) {
  const float d = LoadHalf(block);
  if (type == DType::kQ8_0) {
    for (int i = 0; i < 32; ++i) {
      y[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
    }
  } else if (type == DType::kQ4_0) {
    UnpackNibbles(block + 2, y);
    for (int i = 0; i < 32; ++i) y[i] = d * (y[i] - 8.0f);
  } else {
    STRATA_CHECK(type == DType::kQ4_1);
    const float m = LoadHalf(block + 2);
    UnpackNibbles(block + 4, y);
    for (int i = 0; i < 32; ++i) y[i] = d * y[i] + m;
  }
}

}  // namespace

void DequantizeRow(const WeightView& view, int64_t row, float* y) {
  const std::byte* data = view.data + view.StoredRow(row) * view.RowBytes();
  switch (view.type) {
    case DType::kF32:
      std::memcpy(y, data, view.RowBytes());
      return;
    case DType::kF16:
      for (int64_t c = 0; c < view.cols; ++c) y[c] = LoadHalf(data + 2 * c);
      return;
    case DType::kBF16:
      for (int64_t c = 0; c < view.cols; ++c) {
        y[c] = std::bit_cast<float>(uint32_t{LoadU16(data + 2 * c)} << 16);
      }
      return;
    default:
      for (int64_t c = 0; c < view.cols; c += 32) {
        DequantizeBlock(view.type, data + c / 32 * BlockBytes(view.type),
                        y + c);
      }
  }
}

}  // namespace strata::cpu
