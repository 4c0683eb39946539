#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/cuda/ops.h"
#include "tests/kernels/cuda/device_weights.h"
#include "tests/testing/device_array.h"
#include "tests/testing/for_each_schedule.h"

namespace strata::cuda {
namespace {

TEST(EmbedTest, CopiesTheRowsOfTokens) {
  constexpr int kVocab = 7;
  std::mt19937_64 random(1);
  for (const WeightFormat format : kAllFormats) {
    // The widest has more chunks than a block threads, of every format.
    for (const int cols : {32, 80, 96, 1056, 4160}) {
      if (HasBlockScales(format) && cols % 32 != 0) continue;
      SCOPED_TRACE(::testing::Message()
                   << WeightFormatName(format) << ' ' << cols);
      const DeviceWeights table(format, kVocab, cols, random);
      // Of rows 1 and 4, the token was sampled by the step before.
      const std::vector<int32_t> tokens = {6, 5, -1, 6, -1};
      const std::vector<int32_t> sampled = {-1, 2, -1, -1, 0};
      std::vector<DeviceSampledToken> results(3);
      results[2].token = 0;
      results[0].token = 3;
      std::vector<float> want;
      for (const int token : {6, 0, -1, 6, 3}) {
        for (int c = 0; c < cols; ++c) {
          want.push_back(token < 0 ? 0.0f : table.At(token, c));
        }
      }
      const DeviceArray<int32_t> device_tokens(tokens);
      const DeviceArray<int32_t> device_sampled(sampled);
      const DeviceArray<DeviceSampledToken> device_results(results);
      ForEachSchedule(4, [&] {
        const DeviceArray<float> x(want.size());
        x.FillWithNan();
        ASSERT_EQ(Embed({.table = table.matrix(),
                         .tokens = device_tokens.get(),
                         .sampled = device_sampled.get(),
                         .results = device_results.get(),
                         .rows = 5,
                         .x = x.get()},
                        nullptr),
                  cudaSuccess);
        EXPECT_EQ(x.ToHost(), want);
      });
    }
  }
}

TEST(EmbedTest, OtherFormatsAreRefused) {
  const DeviceMatrix table = {
      .format = static_cast<WeightFormat>(99), .rows = 1, .cols = 32};
  EXPECT_EQ(Embed({.table = table, .rows = 1}, nullptr), cudaErrorInvalidValue);
}

TEST(EmbedTest, NoRowsIsNoLaunch) {
  EXPECT_EQ(Embed({}, nullptr), cudaSuccess);
  EXPECT_EQ(Gather({}, nullptr), cudaSuccess);
  EXPECT_EQ(Clear({}, nullptr), cudaSuccess);
}

TEST(GatherTest, CopiesTheRowsNamed) {
  for (const int dim : {4, 36, 1028}) {
    SCOPED_TRACE(dim);
    const std::vector<int32_t> row_ids = {2, -1, 0, 2};
    std::vector<float> x(3 * dim, NAN), want;
    for (int c = 0; c < dim; ++c) x[c] = c + 0.5f;
    for (int c = 0; c < dim; ++c) x[2 * dim + c] = -c;  // row 1 is not named
    for (const int id : row_ids) {
      for (int c = 0; c < dim; ++c) {
        want.push_back(id < 0 ? 0.0f : x[id * dim + c]);
      }
    }
    const DeviceArray<float> device_x(x);
    const DeviceArray<int32_t> device_ids(row_ids);
    ForEachSchedule(4, [&] {
      const DeviceArray<float> y(want.size());
      ASSERT_EQ(
          Gather({device_x.get(), device_ids.get(), 4, dim, y.get()}, nullptr),
          cudaSuccess);
      EXPECT_EQ(y.ToHost(), want);
    });
  }
}

TEST(ClearTest, KeepsTheColumnsNamed) {
  struct Case {
    int cols, begin, end;
  };
  // The widest takes more blocks than one.
  for (const Case& c : {Case{1, 0, 1},
                        {7, 0, 4},
                        {129, 64, 129},
                        {5000, 32, 4096},
                        {9, 4, 4}}) {
    SCOPED_TRACE(::testing::Message() << c.cols << ' ' << c.begin);
    constexpr int kRows = 3;
    std::vector<float> before(kRows * c.cols), want;
    for (size_t i = 0; i < before.size(); ++i) {
      before[i] = static_cast<float>(i) + 0.5f;
      const int col = static_cast<int>(i) % c.cols;
      want.push_back(col >= c.begin && col < c.end ? before[i] : 0.0f);
    }
    ForEachSchedule(4, [&] {
      const DeviceArray<float> y(before);
      ASSERT_EQ(Clear({y.get(), kRows, c.cols, c.begin, c.end}, nullptr),
                cudaSuccess);
      EXPECT_EQ(y.ToHost(), want);
    });
  }
}

}  // namespace
}  // namespace strata::cuda
