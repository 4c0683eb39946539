#include "kernels/cpu/exp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/cpu_features.h"

namespace strata::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) float FirstLaneAvx2(float x) {
  return _mm256_cvtss_f32(ExpAvx2(_mm256_set1_ps(x)));
}

__attribute__((target("avx512f"))) float FirstLaneAvx512(float x) {
  return _mm512_cvtss_f32(ExpAvx512(_mm512_set1_ps(x)));
}
#endif

float ExpOf(Isa isa, float x) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return FirstLaneAvx2(x);
  if (isa == Isa::kAvx512) return FirstLaneAvx512(x);
#endif
  return Exp(x);
}

class ExpTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > DetectIsa()) GTEST_SKIP() << "not on this machine";
  }
};

TEST_P(ExpTest, IsWithinTwoUnitsInTheLastPlace) {
  for (double x = -87.33; x < 88.72; x += 0.000937) {
    const float at = static_cast<float>(x);
    const double want = std::exp(static_cast<double>(at));
    const float nearest = static_cast<float>(want);
    const double unit = std::nextafter(nearest, kInfinity) - nearest;
    ASSERT_TRUE(std::abs(ExpOf(GetParam(), at) - want) <= 2 * unit)
        << "x = " << at;
  }
}

TEST_P(ExpTest, EndsOfTheRange) {
  const Isa isa = GetParam();
  EXPECT_EQ(ExpOf(isa, 0.0f), 1.0f);
  EXPECT_EQ(ExpOf(isa, -0.0f), 1.0f);
  EXPECT_EQ(ExpOf(isa, -kInfinity), 0.0f);
  EXPECT_EQ(ExpOf(isa, -87.4f), 0.0f);
  EXPECT_EQ(ExpOf(isa, -1e30f), 0.0f);
  EXPECT_EQ(ExpOf(isa, kInfinity), kInfinity);
  EXPECT_EQ(ExpOf(isa, 88.73f), kInfinity);
  EXPECT_EQ(ExpOf(isa, 1e30f), kInfinity);
  EXPECT_TRUE(std::isnan(ExpOf(isa, std::numeric_limits<float>::quiet_NaN())));
}

INSTANTIATE_TEST_SUITE_P(
    All, ExpTest, ::testing::Values(Isa::kPortable, Isa::kAvx2, Isa::kAvx512),
    [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace strata::cpu
