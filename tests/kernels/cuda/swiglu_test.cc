#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/cuda/ops.h"
#include "tests/testing/device_array.h"
#include "tests/testing/for_each_schedule.h"
#include "tests/testing/near.h"

namespace strata::cuda {
namespace {

TEST(SwiGluTest, MatchesTheFormula) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  for (const int cols : {8, 96, 1024, 2056}) {
    SCOPED_TRACE(cols);
    constexpr int kRows = 3;
    std::vector<float> y(kRows * 2 * cols), want;
    for (float& v : y) v = 3 * normal(random);
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < cols; ++c) {
        const double gate = y[r * 2 * cols + c];
        want.push_back(gate / (1 + std::exp(-gate)) *
                       y[r * 2 * cols + cols + c]);
      }
    }
    const DeviceArray<float> device_y(y);
    ForEachSchedule(4, [&] {
      const DeviceArray<Bf16> z(want.size());
      ASSERT_EQ(
          SwiGlu(
              {.y = device_y.get(), .rows = kRows, .cols = cols, .z = z.get()},
              nullptr),
          cudaSuccess);
      std::vector<float> got;
      for (const Bf16 v : z.ToHost()) got.push_back(ToFloat(v));
      EXPECT_TRUE(AllNear(got, want, 1e-6f, 0.0040f));
    });
  }
}

TEST(SwiGluTest, NoRowsIsNoLaunch) {
  EXPECT_EQ(SwiGlu({}, nullptr), cudaSuccess);
}

TEST(SwiGluTest, RefusesPartsOfAChunk) {
  EXPECT_EQ(SwiGlu({.rows = 1, .cols = 12}, nullptr), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace strata::cuda
