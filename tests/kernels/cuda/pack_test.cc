#include "kernels/cuda/pack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tests/kernels/cpu/weights.h"

namespace strata::cuda {
namespace {

struct Packed {
  PackedFormat format;
  std::vector<std::byte> data;
  std::vector<F16> scales;

  // By the comment of DeviceMatrix.
  double At(int64_t row, int64_t col) const {
    const std::byte* data_row = data.data() + row * format.row_bytes;
    if (format.type == DType::kBF16) {
      Bf16 v;
      std::memcpy(&v, data_row + 2 * col, 2);
      return ToFloat(v);
    }
    const double d = HalfValue(
        static_cast<uint16_t>(scales[row * format.row_scales + col / 32]));
    if (format.type == DType::kQ8_0) {
      return d * static_cast<int8_t>(data_row[col]);
    }
    const int pair = static_cast<int>(data_row[col / 32 * 16 + col % 16]);
    return d * ((col % 32 < 16 ? pair & 15 : pair >> 4) - 8);
  }
};

Packed Pack(const WeightView& view, int64_t first, int64_t count) {
  Packed packed = {PackedFormatOf(view), {}, {}};
  packed.data.resize(count * packed.format.row_bytes);
  packed.scales.resize(count * packed.format.row_scales);
  PackRows(view, first, count, packed.data.data(), packed.scales.data());
  return packed;
}

TEST(PackTest, HoldsTheMatrixMeant) {
  std::mt19937_64 random(1);
  for (const DType type : kAllDTypes) {
    for (const int head_dim : {0, 8}) {
      SCOPED_TRACE(::testing::Message() << DTypeName(type) << ' ' << head_dim);
      const TestWeights weights(type, 24, 96, random, head_dim);
      const Packed packed = Pack(weights.view, 0, 24);
      EXPECT_EQ(packed.format.type, type == DType::kQ8_0 || type == DType::kQ4_0
                                        ? type
                                        : DType::kBF16);
      for (int r = 0; r < 24; ++r) {
        for (int c = 0; c < 96; ++c) {
          const double want = weights.At(r, c);
          // What is no bf16 is rounded to it once; blocks stay as they are.
          const double error = packed.format.type == DType::kBF16
                                   ? std::abs(want) * 0.00391
                                   : 0.0;
          ASSERT_NEAR(packed.At(r, c), want, error) << r << ' ' << c;
        }
      }
    }
  }
}

TEST(PackTest, PiecesAreTheWhole) {
  std::mt19937_64 random(2);
  for (const DType type : kAllDTypes) {
    SCOPED_TRACE(DTypeName(type));
    const TestWeights weights(type, 31, 64, random);
    Packed whole = Pack(weights.view, 0, 31);
    const Packed head = Pack(weights.view, 0, 17);
    const Packed tail = Pack(weights.view, 17, 14);
    std::vector<std::byte> data = head.data;
    data.insert(data.end(), tail.data.begin(), tail.data.end());
    std::vector<F16> scales = head.scales;
    scales.insert(scales.end(), tail.scales.begin(), tail.scales.end());
    EXPECT_EQ(data, whole.data);
    EXPECT_EQ(scales, whole.scales);
  }
}

}  // namespace
}  // namespace strata::cuda
