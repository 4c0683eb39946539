#include "tests/core/model/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/cpu/dequantize.h"
#include "kernels/cpu/half.h"

namespace strata {
namespace {

TEST(ToHalfTest, IsTheInverseOfHalfToFloatAndRoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float value = cpu::HalfToFloat(static_cast<uint16_t>(bits));
    ASSERT_EQ(ToHalf(value), bits);
    ASSERT_EQ(ToHalf(-value), bits | 0x8000);
    if (bits == 0x7bff) break;
    const float next = cpu::HalfToFloat(static_cast<uint16_t>(bits + 1));
    const float middle = (value + next) / 2;  // exact
    ASSERT_EQ(ToHalf(middle), bits + (bits & 1)) << bits;
    ASSERT_EQ(ToHalf(std::nextafter(middle, 0.0f)), bits) << bits;
    ASSERT_EQ(ToHalf(std::nextafter(middle, 1e9f)), bits + 1) << bits;
  }
  EXPECT_EQ(ToHalf(65519.9f), 0x7bff);
  EXPECT_EQ(ToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(ToHalf(-INFINITY), 0xfc00);
  EXPECT_EQ(ToHalf(NAN), 0x7e00);
}

TEST(QuantizeTest, RestoresToHalfAStep) {
  std::mt19937_64 random(20);
  std::normal_distribution<float> normal;
  std::vector<float> values(32 * 33);
  for (float& v : values) v = normal(random);
  struct Case {
    DType type;
    float steps;  // of the range of a block
  };
  for (const auto& [type, steps] :
       {Case{DType::kF32, 1e9f}, Case{DType::kF16, 1000.0f},
        Case{DType::kBF16, 200.0f}, Case{DType::kQ8_0, 254.0f},
        Case{DType::kQ4_0, 16.0f}, Case{DType::kQ4_1, 15.0f}}) {
    const std::string bytes = Quantize(type, values);
    const WeightView view{
        .data = reinterpret_cast<const std::byte*>(bytes.data()),
        .type = type,
        .rows = 33,
        .cols = 32};
    ASSERT_EQ(static_cast<int64_t>(bytes.size()), view.NumBytes());
    for (int row = 0; row < 33; ++row) {
      float got[32];
      cpu::DequantizeRow(view, row, got);
      const float* want = values.data() + row * 32;
      float largest = 0.0f;
      for (int i = 0; i < 32; ++i)
        largest = std::max(largest, std::abs(want[i]));
      // Q4_0 has no code for +8: one value may be a whole step off.  Scales are
      // rounded to f16.
      const float step =
          2 * largest / steps * (type == DType::kQ4_0 ? 1.01f : 0.51f);
      for (int i = 0; i < 32; ++i) {
        EXPECT_TRUE(std::abs(got[i] - want[i]) <=
                    step + largest * 2e-3f * (steps < 255))
            << DTypeName(type) << " row " << row << " at " << i << ": "
            << got[i] << ", want " << want[i];
      }
    }
  }
}

TEST(QuantizeTest, ZerosStayZeros) {
  const std::vector<float> zeros(32);
  for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
    const std::string bytes = Quantize(type, zeros);
    const WeightView view{
        .data = reinterpret_cast<const std::byte*>(bytes.data()),
        .type = type,
        .rows = 1,
        .cols = 32};
    float got[32];
    cpu::DequantizeRow(view, 0, got);
    for (const float v : got) EXPECT_EQ(v, 0.0f);
  }
}

}  // namespace
}  // namespace strata
