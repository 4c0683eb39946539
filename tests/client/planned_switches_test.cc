#include "client/planned_switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace strata {
namespace {

TEST(PlannedSwitchesTest, SemicolonsSeparateAndCommasStay) {
  v1::Strategy strategy;
  ASSERT_TRUE(AddPlannedSwitches(
                  "0:prefix=3; 5 : leaders=0,4;4294967295:leaders=0", &strategy)
                  .ok());
  ASSERT_EQ(strategy.switches_size(), 3);
  EXPECT_EQ(strategy.switches(0).after_generated(), 0u);
  EXPECT_EQ(strategy.switches(0).spec(), "prefix=3");
  EXPECT_EQ(strategy.switches(1).after_generated(), 5u);
  EXPECT_EQ(strategy.switches(1).spec(), "leaders=0,4");
  EXPECT_EQ(strategy.switches(2).after_generated(), 4294967295u);
  EXPECT_EQ(strategy.switches(2).spec(), "leaders=0");
}

TEST(PlannedSwitchesTest, NothingIsNoSwitch) {
  v1::Strategy strategy;
  EXPECT_TRUE(AddPlannedSwitches("", &strategy).ok());
  EXPECT_EQ(strategy.switches_size(), 0);
}

TEST(PlannedSwitchesTest, WhatIsNoSwitchIsNamed) {
  for (const std::string bad :
       {"5", "5:", ":full", "x:full", "-1:full", "4294967296:full", "5:full;",
        "5:full;;6:full", "full:5"}) {
    v1::Strategy strategy;
    const absl::Status status = AddPlannedSwitches(bad, &strategy);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  v1::Strategy strategy;
  EXPECT_THAT(
      std::string(AddPlannedSwitches("5:full;every=2", &strategy).message()),
      testing::HasSubstr("'every=2' is no TOKENS:STRATEGY"));
}

}  // namespace
}  // namespace strata
