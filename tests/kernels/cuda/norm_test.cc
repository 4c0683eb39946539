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

constexpr float kEps = 0.25f;  // as large as x^2: losing it is seen

std::vector<float> ToFloats(const std::vector<Bf16>& values) {
  std::vector<float> out;
  for (const Bf16 v : values) out.push_back(ToFloat(v));
  return out;
}

TEST(NormTest, MatchesTheFormula) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  for (const int dim : {8, 24, 264, 1000, 4104}) {
    for (const bool by_id : {false, true}) {
      SCOPED_TRACE(::testing::Message() << dim << (by_id ? " by id" : ""));
      const std::vector<int32_t> ids = by_id ? std::vector<int32_t>{4, -1, 0}
                                             : std::vector<int32_t>{0, 1, 2};
      std::vector<float> x(5 * dim, NAN), weight(dim), want;
      for (float& v : weight) v = normal(random);
      for (const int id : ids) {
        double sum = 0;
        for (int c = 0; id >= 0 && c < dim; ++c) {
          const float v = x[id * dim + c] = 0.5f * normal(random);
          sum += double{v} * v;
        }
        const double scale = 1 / std::sqrt(sum / dim + kEps);
        for (int c = 0; c < dim; ++c) {
          want.push_back(id < 0 ? 0 : x[id * dim + c] * scale * weight[c]);
        }
      }
      const DeviceArray<float> device_x(x), device_weight(weight);
      const DeviceArray<int32_t> device_ids(ids);
      ForEachSchedule(4, [&] {
        const DeviceArray<Bf16> y(want.size());
        ASSERT_EQ(Norm({device_x.get(), by_id ? device_ids.get() : nullptr, 3,
                        dim, device_weight.get(), kEps, y.get()},
                       nullptr),
                  cudaSuccess);
        EXPECT_TRUE(AllNear(ToFloats(y.ToHost()), want, 1e-6f, 0.0040f));
      });
    }
  }
}

TEST(NormTest, NoRowsIsNoLaunch) { EXPECT_EQ(Norm({}, nullptr), cudaSuccess); }

}  // namespace
}  // namespace strata::cuda
