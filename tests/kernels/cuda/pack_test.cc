#include "kernels/cuda/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "kernels/fp8.h"
#include "tests/kernels/cpu/weights.h"

namespace strata::cuda {
namespace {

struct Packed {
  WeightFormat format;
  int64_t cols;
  std::vector<std::byte> data, scales;

  float RowScale(int64_t row) const { return Scale<float>(row); }

  // By the comments of WeightFormat.
  double At(int64_t row, int64_t col) const {
    const std::byte* data_row = data.data() + row * RowBytes(format, cols);
    const int byte = static_cast<int>(data_row[col]);
    switch (format) {
      case WeightFormat::kBf16: {
        Bf16 v;
        std::memcpy(&v, data_row + 2 * col, 2);
        return ToFloat(v);
      }
      case WeightFormat::kFp8:
        return double{RowScale(row)} * ToFloat(static_cast<Fp8>(byte));
      case WeightFormat::kQ8_0:
        return BlockScale(row, col) * static_cast<int8_t>(byte);
      case WeightFormat::kQ4_0:
        break;
    }
    const int pair = static_cast<int>(data_row[col / 32 * 16 + col % 16]);
    return BlockScale(row, col) * ((col % 32 < 16 ? pair & 15 : pair >> 4) - 8);
  }

 private:
  template <typename T>
  T Scale(int64_t index) const {
    T scale;
    std::memcpy(&scale, scales.data() + index * int64_t{sizeof(T)}, sizeof(T));
    return scale;
  }
  double BlockScale(int64_t row, int64_t col) const {
    return HalfValue(
        static_cast<uint16_t>(Scale<F16>((row * cols + col) / 32)));
  }
};

Packed Pack(const WeightView& view, WeightFormat format, int64_t first,
            int64_t count) {
  Packed packed = {format, view.cols, {}, {}};
  packed.data.resize(count * RowBytes(format, view.cols));
  packed.scales.resize(count * RowScaleBytes(format, view.cols));
  PackRows(view, format, first, count, packed.data.data(),
           packed.scales.data());
  return packed;
}

TEST(PackTest, FloatsBecomeBf16OrFp8) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    EXPECT_EQ(FormatOf(type, false), WeightFormat::kBf16);
    EXPECT_EQ(FormatOf(type, true), WeightFormat::kFp8);
  }
  for (const bool fp8 : {false, true}) {
    EXPECT_EQ(FormatOf(DType::kQ8_0, fp8), WeightFormat::kQ8_0);
    EXPECT_EQ(FormatOf(DType::kQ4_0, fp8), WeightFormat::kQ4_0);
    EXPECT_EQ(FormatOf(DType::kQ4_1, fp8), WeightFormat::kBf16);
  }
}

TEST(PackTest, BytesAreThoseOfWeightsAndScales) {
  const WeightView view = {.rows = 3, .cols = 64};
  EXPECT_EQ(PackedBytes(view, WeightFormat::kBf16), 3 * 64 * 2);
  EXPECT_EQ(PackedBytes(view, WeightFormat::kQ8_0), 3 * (64 + 2 * 2));
  EXPECT_EQ(PackedBytes(view, WeightFormat::kQ4_0), 3 * (32 + 2 * 2));
  EXPECT_EQ(PackedBytes(view, WeightFormat::kFp8), 3 * (64 + 4));
}

template <typename Check>
void ForEachPacking(Check check) {
  for (const DType type : kAllDTypes) {
    for (const bool fp8 : {false, true}) {
      const WeightFormat format = FormatOf(type, fp8);
      SCOPED_TRACE(::testing::Message()
                   << DTypeName(type) << ' ' << WeightFormatName(format));
      check(type, format);
    }
  }
}

// How far off a weight may be where it is rounded: half of the last bit.
double Error(const Packed& packed, int64_t row, double want) {
  switch (packed.format) {
    case WeightFormat::kBf16:
      return std::abs(want) / 256;
    case WeightFormat::kFp8:
      return std::max(std::abs(want) / 16,
                      std::ldexp(double{packed.RowScale(row)}, -10));
    default:
      return 0.0;  // blocks stay as they are
  }
}

TEST(PackTest, HoldsTheMatrixMeant) {
  std::mt19937_64 random(1);
  ForEachPacking([&](DType type, WeightFormat format) {
    for (const int head_dim : {0, 8}) {
      const TestWeights weights(type, 24, 96, random, head_dim);
      const Packed packed = Pack(weights.view, format, 0, 24);
      for (int r = 0; r < 24; ++r) {
        for (int c = 0; c < 96; ++c) {
          const double want = weights.At(r, c);
          ASSERT_NEAR(packed.At(r, c), want, Error(packed, r, want))
              << r << ' ' << c;
        }
      }
    }
  });
}

TEST(PackTest, PiecesAreTheWhole) {
  std::mt19937_64 random(2);
  ForEachPacking([&](DType type, WeightFormat format) {
    const TestWeights weights(type, 31, 64, random);
    const Packed whole = Pack(weights.view, format, 0, 31);
    const Packed head = Pack(weights.view, format, 0, 17);
    const Packed tail = Pack(weights.view, format, 17, 14);
    const auto joined = [](std::vector<std::byte> a,
                           const std::vector<std::byte>& b) {
      a.insert(a.end(), b.begin(), b.end());
      return a;
    };
    EXPECT_EQ(joined(head.data, tail.data), whole.data);
    EXPECT_EQ(joined(head.scales, tail.scales), whole.scales);
  });
}

// Rows of 16: the numbers given, then zeros.
Packed PackFp8(const std::vector<std::vector<float>>& rows) {
  std::vector<float> values;
  for (std::vector<float> row : rows) {
    row.resize(16);
    values.insert(values.end(), row.begin(), row.end());
  }
  const auto count = static_cast<int64_t>(rows.size());
  return Pack({.data = reinterpret_cast<const std::byte*>(values.data()),
               .type = DType::kF32,
               .rows = count,
               .cols = 16},
              WeightFormat::kFp8, 0, count);
}

TEST(Fp8PackTest, ScalesAreTheLeastPowersOfTwo) {
  const Packed packed = PackFp8({{448.0f},
                                 {-448.0f, 1.0f},
                                 {std::nextafter(448.0f, 1e9f)},
                                 {3.5f, 0x1p-9f},
                                 {-3.75f},
                                 {0.0f, -0.0f}});
  const std::vector<float> want = {1.0f, 1.0f, 2.0f, 0x1p-7f, 0x1p-6f, 1.0f};
  for (size_t r = 0; r < want.size(); ++r) {
    EXPECT_EQ(packed.RowScale(r), want[r]) << r;
  }
  EXPECT_EQ(packed.At(0, 0), 448.0);
  EXPECT_EQ(packed.At(1, 0), -448.0);
  EXPECT_EQ(packed.At(2, 0), 448.0);  // the nearest that there is
  EXPECT_EQ(packed.At(3, 0), 3.5);
  EXPECT_EQ(packed.At(3, 1), 0x1p-9);
  EXPECT_EQ(packed.At(4, 0), -3.75);
  EXPECT_EQ(packed.At(5, 0), 0.0);
}

// Each has a scale of its own, so that none loses to another's size.
TEST(Fp8PackTest, TinyAndHugeRowsKeepTheirPrecision) {
  constexpr float kMax = std::numeric_limits<float>::max();
  for (const float size :
       {kMax, 1e30f, 7e4f, 1e-3f, 1e-10f, 1e-30f, 0x1p-117f}) {
    const Packed packed = PackFp8({{size, -size / 3, size / 1000}, {1.0f}});
    for (const auto& [col, want] :
         {std::pair(0, size), {1, -size / 3}, {2, size / 1000}}) {
      EXPECT_NEAR(packed.At(0, col), want, std::abs(want) / 16) << size;
    }
    EXPECT_EQ(packed.At(1, 0), 1.0);
  }
  // Below the scales that there are, down to the least float.
  const Packed packed = PackFp8({{0x1p-126f, -0x1p-135f}, {0x1p-149f}});
  EXPECT_EQ(packed.RowScale(0), 0x1p-126f);
  EXPECT_EQ(packed.At(0, 0), 0x1p-126);
  EXPECT_EQ(packed.At(0, 1), -0x1p-135);
  EXPECT_EQ(packed.RowScale(1), 0x1p-126f);
  EXPECT_EQ(packed.At(1, 0), 0.0);
}

TEST(Fp8PackTest, RowsThatAreNotFiniteStaySo) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float bad : {NAN, -NAN, kInf, -kInf}) {
    const Packed packed = PackFp8({{1.0f}, {1.0f, 2.0f, bad, 3.0f}, {2.0f}});
    EXPECT_TRUE(std::isnan(packed.RowScale(1))) << bad;
    EXPECT_EQ(packed.At(0, 0), 1.0);
    EXPECT_EQ(packed.At(2, 0), 2.0);
    for (const std::byte b : packed.data) {  // what kernels cannot widen
      EXPECT_FALSE(std::isnan(ToFloat(static_cast<Fp8>(b))));
    }
  }
}

// So that rounding them for tensor cores changes nothing.
TEST(Fp8PackTest, ScaledWeightsAreBf16Numbers) {
  std::mt19937_64 random(3);
  const TestWeights weights(DType::kF32, 7, 96, random);
  const Packed packed = Pack(weights.view, WeightFormat::kFp8, 0, 7);
  for (int r = 0; r < 7; ++r) {
    for (int c = 0; c < 96; ++c) {
      const auto v = static_cast<float>(packed.At(r, c));
      EXPECT_EQ(ToFloat(ToBf16(v)), v);
    }
  }
}

}  // namespace
}  // namespace strata::cuda
