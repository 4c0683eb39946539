#include "core/strategy_registry.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

using Labels = std::vector<std::string>;

TEST(StrategyRegistryTest, ResolvesDefaultNamesAndSpecs) {
  StrategyRegistry registry(8, SharingStrategy::Full(8));
  EXPECT_EQ(registry.Resolve("")->canonical(), "full");
  EXPECT_EQ(registry.Resolve("every=2")->canonical(), "every=2");
  EXPECT_EQ(registry.Resolve("half").status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(registry.Register("half", "every=2").ok());
  EXPECT_EQ(registry.Resolve("half")->canonical(), "every=2");
  registry.SetDefault(*registry.Resolve("half"));
  EXPECT_EQ(registry.Resolve("")->canonical(), "every=2");
  EXPECT_EQ(registry.default_strategy().canonical(), "every=2");
}

TEST(StrategyRegistryTest, ANameGetsItsNewMeaning) {
  StrategyRegistry registry(8, SharingStrategy::Full(8));
  ASSERT_TRUE(registry.Register("a", "every=2").ok());
  ASSERT_TRUE(registry.Register("b", "a").ok());
  ASSERT_TRUE(registry.Register("a", "every=4").ok());
  EXPECT_EQ(registry.Resolve("a")->canonical(), "every=4");
  EXPECT_EQ(registry.Resolve("b")->canonical(), "every=2");
  ASSERT_EQ(registry.registered().size(), 2u);
  EXPECT_EQ(registry.registered()[0].name, "a");
  EXPECT_EQ(registry.registered()[1].name, "b");
}

TEST(StrategyRegistryTest, RefusesNamesAndSpecs) {
  StrategyRegistry registry(8, SharingStrategy::Full(8));
  for (const std::string& name :
       {std::string("full"), std::string(""), std::string("A"),
        std::string("1a"), std::string("a b"), std::string("a=b"),
        std::string("-a"), std::string("\xc3\xa4"), std::string(33, 'a')}) {
    EXPECT_EQ(registry.Register(name, "every=2").code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
  EXPECT_TRUE(registry.Register(std::string(32, 'a'), "every=2").ok());
  EXPECT_TRUE(registry.Register("a-0_z", "every=2").ok());
  EXPECT_FALSE(registry.Register("a", "").ok());
  EXPECT_FALSE(registry.Register("a", "unknown").ok());
  EXPECT_EQ(registry.registered().size(), 2u);
}

TEST(StrategyRegistryTest, HoldsSixtyFourNames) {
  StrategyRegistry registry(8, SharingStrategy::Full(8));
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(registry.Register(absl::StrCat("n", i), "every=2").ok());
  }
  EXPECT_EQ(registry.Register("one-more", "every=2").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(registry.Register("n3", "every=4").ok());
}

TEST(StrategyRegistryTest, LabelsAreStableAndBounded) {
  StrategyRegistry registry(8, SharingStrategy::Full(8));
  EXPECT_EQ(registry.labels(), (Labels{"other", "full"}));
  ASSERT_TRUE(registry.Register("half", "every=2").ok());
  ASSERT_TRUE(registry.Register("same", "leaders=0,2,4,6").ok());
  registry.SetDefault(*registry.Resolve("every=4"));
  EXPECT_EQ(registry.labels(), (Labels{"other", "full", "every=2", "every=4"}));
  EXPECT_EQ(registry.LabelOf(*registry.Resolve("every=2")), 2);
  EXPECT_EQ(registry.LabelOf(*registry.Resolve("every=3")), 0);
  EXPECT_EQ(registry.LabelOf(SharingStrategy::Full(8)), 1);

  // All 128 sets of leaders and as many maps that read them otherwise.
  for (int leaders = 0; leaders < 1 << 7; ++leaders) {
    std::string spec = "leaders=0", sources = "sources=0";
    for (int layer = 1; layer < 8; ++layer) {
      const bool leads = leaders >> (layer - 1) & 1;
      if (leads) absl::StrAppend(&spec, ",", layer);
      absl::StrAppend(&sources, ",", leads ? layer : 0);
    }
    ASSERT_TRUE(registry.Register("half", spec).ok());
    ASSERT_TRUE(registry.Register("half", sources).ok());
  }
  EXPECT_LE(registry.labels().size(), size_t{StrategyRegistry::kMaxLabels});
  EXPECT_EQ(registry.LabelOf(*registry.Resolve("every=4")), 3);
}

TEST(StrategyRegistryTest, ManyThreadsAtOnce) {
  StrategyRegistry registry(8, SharingStrategy::Full(8));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&registry, t] {
      const std::string name = absl::StrCat("name", t % 2);
      for (int i = 0; i < 500; ++i) {
        const std::string spec = absl::StrCat("every=", 1 + (t + i) % 8);
        EXPECT_TRUE(registry.Register(name, spec).ok());
        EXPECT_TRUE(registry.Resolve(name).ok());
        registry.SetDefault(*registry.Resolve(spec));
        const int label = registry.LabelOf(registry.default_strategy());
        EXPECT_LT(static_cast<size_t>(label), registry.labels().size());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(registry.registered().size(), 2u);
}

}  // namespace
}  // namespace strata
