#include "core/model/matrix_merger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/dequantize.h"
#include "kernels/cpu/half.h"
#include "tests/core/model/quantize.h"
#include "tests/testing/near.h"

namespace strata {
namespace {

constexpr uint64_t kSeed = 20261130;

std::vector<float> RandomFloats(int64_t count, std::mt19937_64* random) {
  std::normal_distribution<float> normal(0.0f, 0.1f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(*random);
  return values;
}

// A matrix of random numbers, rounded to its type.
struct RandomMatrix {
  RandomMatrix(DType type, int64_t rows, int64_t cols, std::mt19937_64* random)
      : bytes(Quantize(type, RandomFloats(rows * cols, random))),
        view{.data = reinterpret_cast<const std::byte*>(bytes.data()),
             .type = type,
             .rows = rows,
             .cols = cols} {}

  std::string bytes;
  WeightView view;
};

std::vector<float> Row(const WeightView& view, int64_t row) {
  std::vector<float> values(view.cols);
  cpu::DequantizeRow(view, row, values.data());
  return values;
}

// How far a value of `type` may be from what it stands for.
float Rounding(DType type, float value, float largest_of_row) {
  switch (type) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return std::abs(value) * 0x1p-11f + 0x1p-24f;
    case DType::kBF16:
      return std::abs(value) * 0x1p-8f;
    default:  // half a step; the scale is rounded too
      return largest_of_row / 127 * 0.501f;
  }
}

void ExpectMerged(const WeightView& base, const LowRankUpdate& update,
                  const WeightView& merged) {
  ASSERT_EQ(merged.rows, base.rows);
  ASSERT_EQ(merged.cols, base.cols);
  ASSERT_EQ(merged.type, update.merged_type);
  EXPECT_EQ(merged.interleaved_head_dim, 0);
  for (int64_t i = 0; i < base.rows; ++i) {
    std::vector<float> want = Row(base, i);
    const std::vector<float> b = Row(update.b, i);
    float largest = 0;
    for (int64_t c = 0; c < base.cols; ++c) {
      double sum = 0;
      for (int64_t k = 0; k < update.a.rows; ++k) {
        sum += double{b[k]} * Row(update.a, k)[c];
      }
      want[c] += static_cast<float>(update.scale * sum);
      largest = std::max(largest, std::abs(want[c]));
    }
    const std::vector<float> got = Row(merged, i);
    for (int64_t c = 0; c < base.cols; ++c) {
      const float rounding =
          Rounding(merged.type, want[c], largest) + 1e-6f * largest;
      ASSERT_TRUE(AllNear({&got[c], 1}, {&want[c], 1}, rounding, 0))
          << "row " << i << ", column " << c;
    }
  }
}

TEST(MatrixMergerTest, AddsTheUpdate) {
  std::mt19937_64 random(kSeed);
  struct Case {
    DType base, merged, a, b;
    int64_t rows, cols, rank;
  };
  using enum DType;
  for (const Case& c : {Case{kF32, kF32, kF32, kF32, 33, 31, 5},
                        {kF32, kF32, kF16, kBF16, 1, 1, 1},
                        {kF16, kF16, kBF16, kF32, 31, 33, 3},
                        {kBF16, kBF16, kF32, kF16, 7, 257, 33},
                        {kQ8_0, kQ8_0, kF32, kF32, 33, 96, 4},
                        {kQ4_0, kQ8_0, kBF16, kBF16, 5, 32, 31},
                        {kQ4_1, kQ8_0, kF16, kF16, 257, 64, 7},
                        {kQ4_1, kF32, kF32, kF32, 34, 64, 2}}) {
    for (const int threads : {1, 2, 5, 300}) {
      SCOPED_TRACE(testing::Message()
                   << DTypeName(c.base) << " " << c.rows << "x" << c.cols
                   << ", rank " << c.rank << ", threads " << threads
                   << ", seed " << kSeed);
      const RandomMatrix base(c.base, c.rows, c.cols, &random);
      const RandomMatrix a(c.a, c.rank, c.cols, &random);
      const RandomMatrix b(c.b, c.rows, c.rank, &random);
      MatrixMerger merger(threads);
      const LowRankUpdate update = {
          .a = a.view, .b = b.view, .scale = 1.7f, .merged_type = c.merged};
      ExpectMerged(base.view, update, merger.Merge(base.view, update));
    }
  }
}

// The update has the model's order of rows, whatever that of the file is.
TEST(MatrixMergerTest, InterleavedRowsAreMergedInTheModelsOrder) {
  std::mt19937_64 random(kSeed);
  RandomMatrix base(DType::kQ4_1, 36, 32, &random);
  base.view.interleaved_head_dim = 12;
  const RandomMatrix a(DType::kF32, 3, 32, &random);
  const RandomMatrix b(DType::kF32, 36, 3, &random);
  const LowRankUpdate update = {
      .a = a.view, .b = b.view, .scale = -2.0f, .merged_type = DType::kF32};
  MatrixMerger merger(2);
  ExpectMerged(base.view, update, merger.Merge(base.view, update));
}

TEST(MatrixMergerTest, BuffersServeOneMatrixAfterAnother) {
  std::mt19937_64 random(kSeed);
  MatrixMerger merger(2);
  for (const int64_t size : {64, 32, 96}) {
    const RandomMatrix base(DType::kBF16, size, size, &random);
    const RandomMatrix a(DType::kF32, 2, size, &random);
    const RandomMatrix b(DType::kF32, size, 2, &random);
    const LowRankUpdate update = {
        .a = a.view, .b = b.view, .scale = 1, .merged_type = DType::kBF16};
    ExpectMerged(base.view, update, merger.Merge(base.view, update));
  }
}

uint16_t EncodedHalf(float value) {
  uint16_t bits = 0;
  EncodeWeights(DType::kF16, {&value, 1}, reinterpret_cast<std::byte*>(&bits));
  return bits;
}

TEST(EncodeWeightsTest, HalvesAreTheNearest) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7c00) == 0x7c00) continue;  // infinities and NaNs
    const float exact = cpu::HalfToFloat(static_cast<uint16_t>(bits));
    ASSERT_EQ(EncodedHalf(exact), bits);
    if ((bits & 0x7fff) == 0x7bff) continue;  // the largest
    const float next = cpu::HalfToFloat(static_cast<uint16_t>(bits + 1));
    const float middle = (exact + next) / 2;
    ASSERT_EQ(EncodedHalf(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(EncodedHalf(std::nextafter(middle, exact)), bits);
    ASSERT_EQ(EncodedHalf(std::nextafter(middle, next)), bits + 1);
  }
  EXPECT_EQ(EncodedHalf(65519.0f), 0x7bff);
  EXPECT_EQ(EncodedHalf(-1e30f), 0xfbff);
  EXPECT_EQ(EncodedHalf(1e-30f), 0);
}

// Whatever the scale, to half a step of what F16 can say of it.
TEST(EncodeWeightsTest, BlocksOfEightBitsReachTheirLargest) {
  std::mt19937_64 random(kSeed);
  for (const float size : {1e-7f, 1e-4f, 1e-2f, 1.0f, 1e4f}) {
    std::vector<float> values = RandomFloats(96, &random);
    for (float& value : values) value *= size;
    for (int i = 32; i < 64; ++i) values[i] = 0;
    std::vector<std::byte> bytes(102);
    EncodeWeights(DType::kQ8_0, values, bytes.data());
    const WeightView view = {
        .data = bytes.data(), .type = DType::kQ8_0, .rows = 1, .cols = 96};
    const std::vector<float> got = Row(view, 0);
    for (int block = 0; block < 96; block += 32) {
      const std::span want(values.data() + block, 32);
      float largest = 0;
      for (const float value : want)
        largest = std::max(largest, std::abs(value));
      const float step = largest / 127 * (1 + 0x1p-10f) + 0x1p-24f;
      EXPECT_TRUE(AllNear({got.data() + block, 32}, want, step * 0.5001f, 0))
          << "size " << size << ", seed " << kSeed;
    }
  }
}

TEST(EncodeWeightsTest, WhatNoScaleReachesIsCut) {
  std::vector<float> values(32, -1e30f);
  values[1] = 1.0f;
  std::vector<std::byte> bytes(34);
  EncodeWeights(DType::kQ8_0, values, bytes.data());
  const WeightView view = {
      .data = bytes.data(), .type = DType::kQ8_0, .rows = 1, .cols = 32};
  EXPECT_EQ(Row(view, 0)[0], -127.0f * 65504.0f);
  EXPECT_EQ(Row(view, 0)[1], 0.0f);
}

}  // namespace
}  // namespace strata
