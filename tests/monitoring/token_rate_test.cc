#include "monitoring/token_rate.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(1000) + absl::Seconds(seconds);
}

TEST(TokenRateTest, IsTheMeanOfTheLastTenSeconds) {
  TokenRate rate;
  EXPECT_EQ(rate.PerSecond(At(0)), 0.0);
  rate.Add(At(0.1), 7);
  rate.Add(At(0.9), 3);
  EXPECT_EQ(rate.PerSecond(At(0.9)), 1.0);
  rate.Add(At(4), 30);
  EXPECT_EQ(rate.PerSecond(At(9.9)), 4.0);
  EXPECT_EQ(rate.PerSecond(At(10)), 3.0) << "the first second has passed";
  EXPECT_EQ(rate.PerSecond(At(14)), 0.0);
}

TEST(TokenRateTest, ReusesTheSlotOfAnEarlierSecond) {
  TokenRate rate;
  rate.Add(At(0), 100);
  rate.Add(At(20), 5);
  EXPECT_EQ(rate.PerSecond(At(20)), 0.5);
}

}  // namespace
}  // namespace strata
