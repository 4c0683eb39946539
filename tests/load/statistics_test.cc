#include "tests/load/statistics.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(PercentileTest, IsNumpysDefault) {
  // numpy.percentile([1, 2, 4, 8], [0, 10, 50, 90, 99, 100])
  const std::vector<double> values = {1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(Percentile(values, 0), 1);
  EXPECT_DOUBLE_EQ(Percentile(values, 10), 1.3);
  EXPECT_DOUBLE_EQ(Percentile(values, 50), 3);
  EXPECT_DOUBLE_EQ(Percentile(values, 90), 6.8);
  EXPECT_DOUBLE_EQ(Percentile(values, 99), 7.88);
  EXPECT_DOUBLE_EQ(Percentile(values, 100), 8);
  EXPECT_DOUBLE_EQ(Percentile({7}, 99), 7);
}

TEST(DescribeTest, SortsAndUsesThePopulationsDeviation) {
  const Statistics s = Describe({8, 1, 4, 2});
  EXPECT_DOUBLE_EQ(s.mean, 3.75);
  EXPECT_DOUBLE_EQ(s.median, 3);
  EXPECT_DOUBLE_EQ(s.p50, 3);
  EXPECT_NEAR(s.std, 2.6809513236909020, 1e-12);  // numpy.std
  EXPECT_DOUBLE_EQ(s.p90, 6.8);
  EXPECT_DOUBLE_EQ(s.p95, 7.4);
  EXPECT_DOUBLE_EQ(s.p99, 7.88);
}

TEST(DescribeTest, NothingIsZero) {
  EXPECT_EQ(Describe({}).mean, 0);
  EXPECT_EQ(Describe({}).p99, 0);
}

}  // namespace
}  // namespace strata
