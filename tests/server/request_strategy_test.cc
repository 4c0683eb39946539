#include "server/request_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int kLayers = 8;

struct Planned {
  uint32_t after_generated;
  std::string spec;
};

v1::Strategy Message(const std::string& spec, const std::string& floor,
                     const std::vector<Planned>& switches) {
  v1::Strategy message;
  message.set_spec(spec);
  message.set_floor(floor);
  for (const Planned& planned : switches) {
    v1::PlannedSwitch* added = message.add_switches();
    added->set_after_generated(planned.after_generated);
    added->set_spec(planned.spec);
  }
  return message;
}

class RequestStrategyTest : public testing::Test {
 protected:
  RequestStrategyTest() : registry_(kLayers, SharingStrategy::Full(kLayers)) {
    EXPECT_TRUE(registry_.Register("half", "every=2").ok());
    EXPECT_TRUE(registry_.Register("quarter", "every=4").ok());
  }
  absl::StatusOr<Request> Parse(const std::string& spec,
                                const std::string& floor,
                                const std::vector<Planned>& switches) {
    return RequestWithStrategy(registry_, Message(spec, floor, switches));
  }
  void ExpectInvalid(const absl::StatusOr<Request>& request,
                     const std::string& field, const std::string& words) {
    ASSERT_FALSE(request.ok()) << field;
    EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string message(request.status().message());
    EXPECT_THAT(message, StartsWith("strategy." + field + ": "));
    EXPECT_THAT(message, HasSubstr(words));
    EXPECT_LE(message.size(), 512u);
  }
  int LabelOf(const SharingStrategy& strategy) {
    return registry_.LabelOf(strategy);
  }

  StrategyRegistry registry_;
};

TEST_F(RequestStrategyTest, EmptyIsTheDefaultAndNeverSwitched) {
  const auto request = Parse("", "", {});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->strategy.canonical(), "full");
  EXPECT_EQ(request->strategy_label, LabelOf(request->strategy));
  EXPECT_FALSE(request->floor.has_value());
  EXPECT_TRUE(request->switches.empty());
}

TEST_F(RequestStrategyTest, FloorAndSwitchesArriveTogetherWithTheirLabels) {
  const auto request = Parse("half", "leaders=0,2,6",
                             {{0, "leaders=0,2,4"},
                              {1, "leaders=0,2,4"},  // no change is allowed
                              {2147483646, "quarter"},
                              {2147483647, "leaders=0"}});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->strategy.canonical(), "every=2");
  EXPECT_NE(request->strategy_label, 0);
  EXPECT_EQ(request->strategy_label, LabelOf(request->strategy));
  ASSERT_TRUE(request->floor.has_value());
  EXPECT_EQ(request->floor->canonical(), "leaders=0,2,6");
  EXPECT_EQ(request->floor_label, 0) << "counted under other";
  ASSERT_EQ(request->switches.size(), 4u);
  EXPECT_EQ(request->switches[0].after_generated, 0);
  EXPECT_EQ(request->switches[0].strategy.canonical(), "leaders=0,2,4");
  EXPECT_EQ(request->switches[0].strategy_label, 0);
  EXPECT_EQ(request->switches[1].after_generated, 1);
  EXPECT_EQ(request->switches[2].after_generated, 2147483646);
  EXPECT_EQ(request->switches[2].strategy.canonical(), "every=4");
  EXPECT_NE(request->switches[2].strategy_label, 0);
  EXPECT_EQ(request->switches[2].strategy_label,
            LabelOf(request->switches[2].strategy));
  EXPECT_EQ(request->switches[3].after_generated, 2147483647);
  EXPECT_EQ(request->switches[3].strategy.canonical(), "every=8");

  const auto floored = Parse("full", "half", {});
  ASSERT_TRUE(floored.ok()) << floored.status();
  EXPECT_NE(floored->floor_label, 0);
  EXPECT_EQ(floored->floor_label, LabelOf(*floored->floor));
}

TEST_F(RequestStrategyTest, TheMapOfATargetIsItsOwn) {
  const auto request = Parse("full", "", {{3, "sources=0,0,0,0,4,4,0,0"}});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->switches[0].strategy.canonical(),
            "sources=0,0,0,0,4,4,0,0");
}

TEST_F(RequestStrategyTest, LeadersAreASubsetOfThoseBefore) {
  ExpectInvalid(Parse("half", "leaders=0,3", {}), "floor",
                "the leaders of \"leaders=0,3\" are not all leaders of "
                "strategy.spec, \"every=2\"");
  ExpectInvalid(Parse("half", "full", {}), "floor", "\"full\"");
  ExpectInvalid(Parse("half", "", {{5, "leaders=0,3"}}), "switches[0].spec",
                "the leaders of \"leaders=0,3\" are not all leaders of "
                "strategy.spec, \"every=2\"");
  // Of the switch before, not of the first strategy.
  ExpectInvalid(Parse("full", "", {{5, "quarter"}, {6, "half"}}),
                "switches[1].spec",
                "the leaders of \"every=2\" are not all leaders of the switch "
                "before, \"every=4\"");
}

TEST_F(RequestStrategyTest, PositionsRise) {
  for (const uint32_t second : {0u, 4u, 5u}) {
    ExpectInvalid(Parse("full", "", {{5, "half"}, {second, "quarter"}}),
                  "switches[1].after_generated",
                  absl::StrCat(second, ", must be above 5"));
  }
  for (const uint32_t position : {2147483648u, 4294967295u}) {
    ExpectInvalid(Parse("full", "", {{position, "half"}}),
                  "switches[0].after_generated",
                  absl::StrCat(position, ", must be at most 2147483647"));
  }
}

TEST_F(RequestStrategyTest, SpecsParse) {
  ExpectInvalid(Parse("evry=2", "", {}), "spec", "evry");
  ExpectInvalid(Parse("full", "third", {}), "floor", "third");
  ExpectInvalid(Parse("full", "", {{1, "half"}, {2, "every=0"}}),
                "switches[1].spec", "every=0");
  // The default is no plan.
  ExpectInvalid(Parse("full", "", {{1, ""}}), "switches[0].spec", "is empty");
}

TEST_F(RequestStrategyTest, SwitchesAreBounded) {
  std::vector<Planned> switches;
  for (uint32_t i = 0; i < 64; ++i) switches.push_back({i, "half"});
  EXPECT_TRUE(Parse("full", "", switches).ok());
  switches.push_back({64, "half"});
  ExpectInvalid(Parse("full", "", switches), "switches",
                "has 65, at most 64 are allowed");
}

TEST_F(RequestStrategyTest, WhatAClientSentIsQuotedCutAndEscaped) {
  const std::string long_text = "\n" + std::string(1000, 'z') + "END";
  for (const auto& request :
       {Parse(long_text, "", {}), Parse("", long_text, {}),
        Parse("", "", {{1, long_text}})}) {
    ASSERT_FALSE(request.ok());
    const std::string message(request.status().message());
    EXPECT_LE(message.size(), 512u);
    EXPECT_THAT(message, HasSubstr("\\nzzz"));
    EXPECT_EQ(message.find("END"), message.npos);
  }
}

}  // namespace
}  // namespace strata
