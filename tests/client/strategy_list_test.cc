#include "client/strategy_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata {
namespace {

using ::testing::ElementsAre;

TEST(SplitStrategiesTest, CommaKeepsListsTogether) {
  EXPECT_THAT(SplitStrategies("full,leaders=0,4,9,every=2"),
              ElementsAre("full", "leaders=0,4,9", "every=2"));
  EXPECT_THAT(SplitStrategies("sources=0,0,2,2"),
              ElementsAre("sources=0,0,2,2"));
  EXPECT_THAT(SplitStrategies("full:0.5,leaders=0,4:0.5"),
              ElementsAre("full:0.5", "leaders=0,4:0.5"));
}

TEST(SplitStrategiesTest, SemicolonSeparatesAlone) {
  EXPECT_THAT(SplitStrategies("full; leaders=0,4 ;keep=0.25"),
              ElementsAre("full", "leaders=0,4", "keep=0.25"));
}

TEST(SplitStrategiesTest, KeepsEmptyItems) {
  EXPECT_THAT(SplitStrategies(""), ElementsAre(""));
  EXPECT_THAT(SplitStrategies("full,,half"), ElementsAre("full", "", "half"));
  EXPECT_THAT(SplitStrategies("4,full"), ElementsAre("4", "full"));
}

}  // namespace
}  // namespace strata
