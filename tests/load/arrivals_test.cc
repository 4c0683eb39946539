#include "tests/load/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace strata {
namespace {

constexpr int kNumCalls = 100'001;

struct Moments {
  double mean = 0;
  double variance = 0;
};

Moments OfGaps(const std::vector<double>& times) {
  Moments m;
  const double count = static_cast<double>(times.size() - 1);
  m.mean = (times.back() - times.front()) / count;
  for (size_t i = 1; i < times.size(); ++i) {
    const double d = times[i] - times[i - 1] - m.mean;
    m.variance += d * d / count;
  }
  return m;
}

TEST(ArrivalTimesTest, PoissonGapsHaveEqualMeanAndDeviation) {
  const Moments m = OfGaps(ArrivalTimes(kNumCalls, 4, 1, 1));
  EXPECT_NEAR(m.mean, 0.25, 0.01 * 0.25);
  EXPECT_NEAR(m.variance, 0.25 * 0.25, 0.03 * 0.25 * 0.25);
}

TEST(ArrivalTimesTest, BurstinessIsTheShapeAndKeepsTheRate) {
  for (double burstiness : {0.25, 5.0}) {
    SCOPED_TRACE(burstiness);
    const Moments m = OfGaps(ArrivalTimes(kNumCalls, 2, burstiness, 2));
    EXPECT_NEAR(m.mean, 0.5, 0.02 * 0.5);
    const double variance = 0.25 / burstiness;
    EXPECT_NEAR(m.variance, variance, 0.1 * variance);
  }
}

TEST(ArrivalTimesTest, RiseFromZeroAndDependOnTheSeed) {
  const std::vector<double> times = ArrivalTimes(100, 10, 1, 3);
  EXPECT_EQ(times[0], 0);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_EQ(times, ArrivalTimes(100, 10, 1, 3));
  EXPECT_NE(times, ArrivalTimes(100, 10, 1, 4));
}

TEST(ArrivalTimesTest, InfiniteBurstinessIsEqualGaps) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ArrivalTimes(4, 2, infinity, 5),
            (std::vector<double>{0, 0.5, 1, 1.5}));
}

TEST(ArrivalTimesTest, InfiniteRateIsAllAtOnce) {
  EXPECT_EQ(ArrivalTimes(3, std::numeric_limits<double>::infinity(), 1, 5),
            std::vector<double>(3, 0.0));
}

}  // namespace
}  // namespace strata
