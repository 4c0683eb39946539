#include "tests/load/capacity.h"

#include <gtest/gtest.h>

#include <set>

namespace strata {
namespace {

// A server that keeps every call good up to `limit` calls/s, and loses them in
// proportion beyond.
ProbeRunner Server(double limit) {
  return [limit](double rate, int) -> absl::StatusOr<Probe> {
    return Probe{.attainment = rate <= limit ? 1 : limit / rate * 0.9};
  };
}

TEST(FindCapacityTest, ComesWithinThePrecisionOfAnyLimit) {
  for (const double limit : {0.13, 0.7, 1.0, 1.01, 6.3, 257.0, 999.0}) {
    const auto found = FindCapacity({.precision = 0.05}, Server(limit));
    ASSERT_TRUE(found.ok());
    EXPECT_LE(found->rate_per_s, limit);
    EXPECT_GT(found->rate_per_s * 1.05, limit * 0.9999) << limit;
    EXPECT_TRUE(found->is_bounded);
    EXPECT_TRUE(found->probes.back().is_confirmation);
    EXPECT_EQ(found->probes.back().rate_per_s, found->rate_per_s);
    EXPECT_LT(found->probes.size(), 20u);
  }
}

TEST(FindCapacityTest, SaysWhereItStopped) {
  const auto none = FindCapacity({.lowest_rate = 0.3}, Server(0.2));
  EXPECT_EQ(none->rate_per_s, 0);
  const auto all = FindCapacity({.highest_rate = 50}, Server(1e9));
  EXPECT_EQ(all->rate_per_s, 50);
  EXPECT_FALSE(all->is_bounded);
  EXPECT_EQ(FindCapacity({.lowest_rate = 3, .highest_rate = 3}, Server(9))
                ->rate_per_s,
            3);
}

TEST(FindCapacityTest, TheAttainmentDecides) {
  const ProbeRunner falling = [](double rate, int) -> absl::StatusOr<Probe> {
    return Probe{.attainment = 1 - rate / 100};
  };
  EXPECT_NEAR(
      FindCapacity({.attainment = 0.9, .precision = 0.01}, falling)->rate_per_s,
      10, 0.1);
  EXPECT_NEAR(
      FindCapacity({.attainment = 0.5, .precision = 0.01}, falling)->rate_per_s,
      50, 0.5);
}

TEST(FindCapacityTest, WhatPassedByLuckHasFailed) {
  // Above 5 calls/s only the first probe of a rate is good.
  std::set<double> seen;
  const ProbeRunner lucky = [&](double rate, int) -> absl::StatusOr<Probe> {
    const bool again = !seen.insert(rate).second;
    return Probe{.attainment = rate <= 5 || (rate < 7 && !again) ? 1.0 : 0.0};
  };
  const auto found = FindCapacity({.precision = 0.1}, lucky);
  ASSERT_TRUE(found.ok());
  EXPECT_LE(found->rate_per_s, 5);
  EXPECT_GT(found->rate_per_s, 3.9);
  // One that never passes twice.
  seen.clear();
  const ProbeRunner never = [&](double rate, int) -> absl::StatusOr<Probe> {
    const bool again = !seen.insert(rate).second;
    return Probe{.attainment = again ? 0.0 : 1.0};
  };
  EXPECT_EQ(FindCapacity({.highest_rate = 4}, never)->rate_per_s, 0);
}

TEST(FindCapacityTest, AnErrorEndsIt) {
  int num_probes = 0;
  const auto found =
      FindCapacity({}, [&](double, int number) -> absl::StatusOr<Probe> {
        EXPECT_EQ(number, num_probes++);
        if (number == 3) return absl::AbortedError("enough");
        return Probe{.attainment = 1};
      });
  EXPECT_EQ(found.status().message(), "enough");
  EXPECT_EQ(num_probes, 4);
}

}  // namespace
}  // namespace strata
