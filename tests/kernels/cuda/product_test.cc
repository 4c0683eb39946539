#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "kernels/cuda/ops.h"
#include "tests/kernels/cuda/device_weights.h"
#include "tests/kernels/cuda/product_problem.h"
#include "tests/testing/device_array.h"

namespace strata::cuda {
namespace {

using Then = ProductArgs::Then;

void Check(const ProductShape& shape, const ProductOptions& options,
           uint64_t schedules = 4) {
  SCOPED_TRACE(::testing::Message()
               << shape.rows << " rows, " << shape.outputs[0] << " outputs, "
               << shape.cols << " columns of "
               << WeightFormatName(options.format));
  ProductProblem(shape, options, shape.rows + shape.cols).Run(schedules);
}

// Rows, outputs and columns that no tile divides, in each regime; the widest
// keeps every pipeline busy beyond its depth.
const ProductShape kGemvShapes[] = {
    {1, {33, 31, 1}, 32}, {2, {1}, 288}, {3, {7, 2}, 1056}, {4, {257}, 96}};
const ProductShape kSmallShapes[] = {
    {5, {33, 31, 1}, 32}, {8, {1}, 1312}, {9, {17, 2}, 1312}, {16, {513}, 96}};
const ProductShape kGemmShapes[] = {
    {17, {33, 31, 1}, 32}, {33, {7}, 480}, {65, {1}, 160}, {130, {129, 5}, 96}};

template <typename Check>
void ForEachShape(Check check) {
  for (const ProductShape& shape : kGemvShapes) check(shape);
  for (const ProductShape& shape : kSmallShapes) check(shape);
  for (const ProductShape& shape : kGemmShapes) check(shape);
}

TEST(ProductTest, Stores) {
  for (const WeightFormat format : kAllFormats) {
    ForEachShape(
        [&](const ProductShape& shape) { Check(shape, {.format = format}); });
  }
}

TEST(ProductTest, LongRowsOfEveryFormat) {
  for (const WeightFormat format : kAllFormats)
    Check({1, {3}, 4192}, {.format = format});
}

TEST(ProductTest, RowsTooLongForSharedMemory) {
  Check({1, {3}, 16416}, {.norm = true}, 2);
}

// Whose last stage or slice, and reordered chunks, are only half there.
TEST(ProductTest, ColumnsThatAreNoMultipleOf32) {
  struct Case {
    WeightFormat format;
    bool norm;
  };
  for (const Case& c : {Case{WeightFormat::kBf16, false},
                        {WeightFormat::kBf16, true},
                        {WeightFormat::kFp8, false}}) {
    for (const ProductShape& shape :
         {ProductShape{1, {5}, 16}, ProductShape{4, {33, 2}, 144},
          ProductShape{3, {7}, 208}, ProductShape{5, {33, 31, 1}, 16},
          ProductShape{8, {3}, 1328}, ProductShape{16, {17}, 80},
          ProductShape{17, {33, 31, 1}, 16}, ProductShape{33, {7}, 496},
          ProductShape{65, {1}, 176}, ProductShape{130, {129, 5}, 80}}) {
      Check(shape, {.format = c.format, .norm = c.norm});
    }
  }
}

TEST(ProductTest, AddsWithBias) {
  ForEachShape([](const ProductShape& shape) {
    Check(shape, {.then = Then::kAdd, .bias = true});
  });
}

TEST(ProductTest, NormComesFirst) {
  for (const bool by_id : {false, true}) {
    ForEachShape([&](const ProductShape& shape) {
      Check(shape, {.norm = true, .by_id = by_id, .bias = true}, 2);
    });
  }
}

TEST(ProductTest, SwiGlu) {
  for (const WeightFormat format : kAllFormats) {
    for (const ProductShape& shape :
         {ProductShape{1, {33, 33}, 96}, ProductShape{4, {1, 1}, 288},
          ProductShape{5, {17, 17}, 96}, ProductShape{16, {33, 33}, 544},
          ProductShape{17, {33, 33}, 96}, ProductShape{33, {17, 17}, 32},
          ProductShape{130, {65, 65}, 32}}) {
      Check(shape, {.format = format, .then = Then::kSwiGlu, .norm = true}, 2);
    }
  }
}

TEST(ProductTest, AnySkipsTheOtherMatrices) {
  for (const int any : {0, 3}) {
    for (const Then then : {Then::kStore, Then::kAdd}) {
      for (const ProductShape& shape :
           {ProductShape{2, {33, 31, 1}, 96}, ProductShape{9, {33, 31, 1}, 96},
            ProductShape{33, {33, 31, 1}, 96}}) {
        Check(shape, {.then = then, .bias = true, .any = any}, 2);
      }
    }
  }
}

// A part of the columns of a wider y; the others stay.
TEST(ProductTest, RowsOfYMayLieApart) {
  constexpr int kOutputs = 65, kCols = 96, kStride = 96, kFirst = 28;
  for (const int rows : {3, 9, 40}) {
    SCOPED_TRACE(rows);
    std::mt19937_64 random(5);
    const DeviceWeights weights(WeightFormat::kBf16, kOutputs, kCols, random);
    std::normal_distribution<float> normal;
    std::vector<Bf16> x(rows * kCols);
    for (Bf16& v : x) v = ToBf16(normal(random));
    const DeviceArray<Bf16> device_x(x);
    const DeviceArray<float> together(rows * kOutputs);
    ProductArgs args = {.x = device_x.get(), .rows = rows, .y = together.get()};
    args.w[0] = weights.matrix();
    ASSERT_EQ(Product(args, nullptr), cudaSuccess);
    const DeviceArray<float> apart(std::vector<float>(rows * kStride, -7.0f));
    args.y = apart.get() + kFirst;
    args.y_stride = kStride;
    ASSERT_EQ(Product(args, nullptr), cudaSuccess);
    const std::vector<float> want = together.ToHost(), got = apart.ToHost();
    for (int i = 0; i < rows * kStride; ++i) {
      const int output = i % kStride - kFirst;
      const bool is_written = output >= 0 && output < kOutputs;
      ASSERT_EQ(got[i],
                is_written ? want[i / kStride * kOutputs + output] : -7.0f);
    }
  }
}

// The first rows of x are the same numbers, whatever comes after.
TEST(ProductTest, RowsDoNotDependOnOtherRows) {
  for (const WeightFormat format : kAllFormats) {
    for (const auto& [few, many] :
         {std::pair(1, 4), {5, 16}, {17, 33}, {33, 70}, {70, 130}}) {
      SCOPED_TRACE(::testing::Message() << few << ' ' << many);
      std::mt19937_64 random(3);
      constexpr int kOutputs = 129, kCols = 288;
      const DeviceWeights weights(format, kOutputs, kCols, random);
      std::normal_distribution<float> normal;
      std::vector<Bf16> x(many * kCols);
      for (Bf16& v : x) v = ToBf16(normal(random));
      std::vector<float> got[2];
      for (const int rows : {few, many}) {
        const DeviceArray<Bf16> device_x(
            std::vector<Bf16>(x.begin(), x.begin() + rows * kCols));
        const DeviceArray<float> y(rows * kOutputs);
        ProductArgs args = {.x = device_x.get(), .rows = rows, .y = y.get()};
        args.w[0] = weights.matrix();
        ASSERT_EQ(Product(args, nullptr), cudaSuccess);
        got[rows == many] = y.ToHost();
      }
      got[1].resize(few * kOutputs);
      EXPECT_EQ(got[0], got[1]);
    }
  }
}

void CheckTogetherAndAlone(const std::vector<WeightFormat>& formats) {
  std::mt19937_64 random(4);
  constexpr int kOutputs = 31, kCols = 96;
  std::vector<std::unique_ptr<DeviceWeights>> weights;
  for (const WeightFormat format : formats) {
    weights.push_back(
        std::make_unique<DeviceWeights>(format, kOutputs, kCols, random));
  }
  for (const int rows : {2, 9, 33}) {
    SCOPED_TRACE(rows);
    const DeviceArray<Bf16> x(std::vector<Bf16>(rows * kCols, ToBf16(0.5f)));
    const DeviceArray<float> together(rows * kOutputs * 3);
    ProductArgs args = {.x = x.get(), .rows = rows, .y = together.get()};
    for (int m = 0; m < 3; ++m) args.w[m] = weights[m]->matrix();
    ASSERT_EQ(Product(args, nullptr), cudaSuccess);
    for (int m = 0; m < 3; ++m) {
      const DeviceArray<float> alone(rows * kOutputs);
      ProductArgs one = {.x = x.get(), .rows = rows, .y = alone.get()};
      one.w[0] = weights[m]->matrix();
      ASSERT_EQ(Product(one, nullptr), cudaSuccess);
      const std::vector<float> want = alone.ToHost(), got = together.ToHost();
      for (int i = 0; i < rows * kOutputs; ++i) {
        ASSERT_EQ(got[(i / kOutputs * 3 + m) * kOutputs + i % kOutputs],
                  want[i])
            << m << ' ' << i;
      }
    }
  }
}

TEST(ProductTest, MatricesOfSeveralFormats) {
  CheckTogetherAndAlone(
      {WeightFormat::kBf16, WeightFormat::kQ8_0, WeightFormat::kQ4_0});
  CheckTogetherAndAlone(
      {WeightFormat::kFp8, WeightFormat::kQ8_0, WeightFormat::kBf16});
  CheckTogetherAndAlone(
      {WeightFormat::kQ4_0, WeightFormat::kFp8, WeightFormat::kFp8});
}

// As PackRows has rows with weights that are not finite.
TEST(ProductTest, AScaleOfNanMakesItsRowNan) {
  constexpr int kOutputs = 5, kCols = 48;
  const DeviceWeights weights =
      DeviceWeights::Nan(WeightFormat::kFp8, kOutputs, kCols);
  for (const int rows : {2, 9, 33}) {
    const DeviceArray<Bf16> x(std::vector<Bf16>(rows * kCols, ToBf16(0.0f)));
    const DeviceArray<float> y(std::vector<float>(rows * kOutputs, 1.0f));
    ProductArgs args = {.x = x.get(), .rows = rows, .y = y.get()};
    args.w[0] = weights.matrix();
    ASSERT_EQ(Product(args, nullptr), cudaSuccess);
    for (const float v : y.ToHost()) ASSERT_TRUE(std::isnan(v)) << rows;
  }
}

TEST(ProductTest, WrongShapesAreRefused) {
  ProductArgs args = {.rows = 1};
  args.w[0] = {.rows = 8, .cols = 40};  // no multiple of 16
  EXPECT_EQ(Product(args, nullptr), cudaErrorInvalidValue);
  args.w[0] = {.format = WeightFormat::kQ8_0, .rows = 8, .cols = 48};  // nor 32
  EXPECT_EQ(Product(args, nullptr), cudaErrorInvalidValue);
  args.w[0] = {.format = WeightFormat::kFp8, .rows = 8, .cols = 48};  // scales
  EXPECT_EQ(Product(args, nullptr), cudaErrorInvalidValue);
  args.w[0].format = WeightFormat::kBf16;
  args.w[0].cols = 64;
  args.w[1] = {.rows = 8, .cols = 96};
  EXPECT_EQ(Product(args, nullptr), cudaErrorInvalidValue);
  args.w[1] = {.rows = 9, .cols = 64};
  args.then = Then::kSwiGlu;
  EXPECT_EQ(Product(args, nullptr), cudaErrorInvalidValue);
  args.w[1] = {.format = WeightFormat::kQ8_0, .rows = 8, .cols = 64};
  EXPECT_EQ(Product(args, nullptr), cudaErrorInvalidValue);
}

TEST(ProductTest, NoRowsIsNoLaunch) {
  ProductArgs args;
  args.w[0] = {.rows = 8, .cols = 32};
  EXPECT_EQ(Product(args, nullptr), cudaSuccess);
}

}  // namespace
}  // namespace strata::cuda
