#include "kernels/cpu/dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cpu/half.h"

namespace strata::cpu {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
void Append(Bytes& bytes, T value) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof(value));
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

constexpr uint16_t kHalf = 0x3800;      // 0.5
constexpr uint16_t kMinusTwo = 0xc000;  // -2

std::vector<float> Row(const Bytes& bytes, DType type, int64_t rows,
                       int64_t cols, int64_t row) {
  std::vector<float> y(cols, std::numeric_limits<float>::quiet_NaN());
  DequantizeRow(
      {.data = bytes.data(), .type = type, .rows = rows, .cols = cols}, row,
      y.data());
  return y;
}

TEST(HalfTest, EveryFiniteValue) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const int exponent = bits >> 10, fraction = bits & 1023;
    const double want = exponent == 0
                            ? std::ldexp(fraction, -24)
                            : std::ldexp(1024 + fraction, exponent - 25);
    ASSERT_EQ(HalfToFloat(bits), want) << bits;
    ASSERT_EQ(HalfToFloat(bits | 0x8000), -want) << bits;
  }
  EXPECT_TRUE(std::signbit(HalfToFloat(0x8000)));
  EXPECT_EQ(HalfToFloat(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(HalfToFloat(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(HalfToFloat(0x7e01)));
}

TEST(DequantizeTest, Floats) {
  Bytes f32, f16, bf16;
  for (const float x : {9.0f, 9.0f, 9.0f, 1.5f, -0.1f, 0.0f}) Append(f32, x);
  for (const uint16_t x : {9, 9, 9, int{kHalf}, int{kMinusTwo}, 1})
    Append(f16, x);
  for (const float x : {9.0f, 9.0f, 9.0f, 1.5f, -0.25f, 3e38f})
    Append(bf16, ToBf16(x));
  EXPECT_EQ(Row(f32, DType::kF32, 2, 3, 1),
            (std::vector<float>{1.5f, -0.1f, 0.0f}));
  EXPECT_EQ(Row(f16, DType::kF16, 2, 3, 1),
            (std::vector<float>{0.5f, -2.0f, 0x1p-24f}));
  EXPECT_EQ(Row(bf16, DType::kBF16, 2, 3, 1),
            (std::vector<float>{1.5f, -0.25f, ToFloat(ToBf16(3e38f))}));
}

// Two rows of two blocks; only the last block is other than zero.
TEST(DequantizeTest, Q8) {
  Bytes bytes(3 * 34);
  Append(bytes, kHalf);
  for (int i = 0; i < 32; ++i)
    Append(bytes, static_cast<int8_t>(i == 31 ? -128 : i * 4));
  const std::vector<float> row = Row(bytes, DType::kQ8_0, 2, 64, 1);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(row[i], 0.0f);
  for (int i = 0; i < 31; ++i) EXPECT_EQ(row[32 + i], 2.0f * i);
  EXPECT_EQ(row[63], -64.0f);
}

TEST(DequantizeTest, Q4) {
  Bytes q4_0(3 * 18), q4_1(3 * 20);
  Append(q4_0, kMinusTwo);
  Append(q4_1, kHalf);
  Append(q4_1, kMinusTwo);
  for (int i = 0; i < 16; ++i) {
    const auto pair = static_cast<uint8_t>(i | (15 - i) << 4);
    Append(q4_0, pair);
    Append(q4_1, pair);
  }
  const std::vector<float> row_0 = Row(q4_0, DType::kQ4_0, 2, 64, 1);
  const std::vector<float> row_1 = Row(q4_1, DType::kQ4_1, 2, 64, 1);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(row_0[i], 0.0f);
    EXPECT_EQ(row_0[32 + i], -2.0f * (i - 8));
    EXPECT_EQ(row_0[48 + i], -2.0f * (15 - i - 8));
    EXPECT_EQ(row_1[32 + i], 0.5f * i - 2.0f);
    EXPECT_EQ(row_1[48 + i], 0.5f * (15 - i) - 2.0f);
  }
}

TEST(DequantizeTest, InterleavedHeads) {
  Bytes bytes;
  for (int r = 0; r < 12; ++r) Append(bytes, static_cast<float>(r));
  const int stored[] = {0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11};
  for (int r = 0; r < 12; ++r) {
    float y = -1.0f;
    DequantizeRow({.data = bytes.data(),
                   .type = DType::kF32,
                   .rows = 12,
                   .cols = 1,
                   .interleaved_head_dim = 6},
                  r, &y);
    EXPECT_EQ(y, stored[r]);
  }
}

}  // namespace
}  // namespace strata::cpu
