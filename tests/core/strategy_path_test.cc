#include "core/strategy_path.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace strata {
namespace {

constexpr int kLayers = 8;

SharingStrategy Parse(const std::string& spec) {
  return *SharingStrategy::Parse(spec, kLayers);
}

// Ten tokens of prompt, and switches after so many generated ones.
Request NewRequest(
    const std::string& spec,
    const std::vector<std::pair<int, std::string>>& switches = {}) {
  Request request(Parse(spec));
  request.prompt.assign(10, 1);
  request.stopping.max_tokens = 100;
  request.strategy_label = 3;
  for (const auto& [after_generated, to] : switches) {
    request.switches.push_back({.after_generated = after_generated,
                                .strategy = Parse(to),
                                .strategy_label = 4});
  }
  return request;
}

// The strategies of positions 0 to 39, each once, with where it begins.
std::string Describe(const StrategyPath& path) {
  std::string text;
  for (int64_t p = 0; p < 40; ++p) {
    const std::string& now = path.StrategyAt(p).canonical();
    if (p > 0 && path.StrategyAt(p - 1).canonical() == now) continue;
    text += (p > 0 ? " " : "") + std::to_string(p) + ":" + now;
  }
  return text;
}

TEST(StrategyPathTest, WithoutSwitchesItIsOneStrategy) {
  const Request request = NewRequest("every=2");
  const StrategyPath path(request, false);
  EXPECT_EQ(path.strategy(), Parse("every=2"));
  EXPECT_EQ(path.label(), 3);
  EXPECT_EQ(path.next_position(), StrategyPath::kNever);
  EXPECT_EQ(Describe(path), "0:every=2");
}

TEST(StrategyPathTest, GoesAlongPlannedSwitches) {
  const Request request = NewRequest("full", {{0, "every=2"}, {5, "every=4"}});
  StrategyPath path(request, false);
  EXPECT_EQ(Describe(path), "0:full 10:every=2 15:every=4");
  EXPECT_EQ(path.next_position(), 10);
  const StrategyPath::Step step = path.Advance();
  EXPECT_EQ(step.position, 10);
  EXPECT_EQ(step.cause, SwitchCause::kPlanned);
  EXPECT_FALSE(step.taken);
  EXPECT_EQ(path.strategy(), Parse("every=2"));
  EXPECT_EQ(path.label(), 4);
  path.Rewind();
  EXPECT_EQ(path.strategy(), Parse("full"));
  EXPECT_TRUE(path.Advance().taken);
  EXPECT_FALSE(path.Advance().taken);
  EXPECT_EQ(path.next_position(), StrategyPath::kNever);
}

TEST(StrategyPathTest, AtTheFloorOnlySmallerSwitchesRemain) {
  Request request = NewRequest(
      "full", {{1, "leaders=0,1,4"}, {2, "every=2"}, {3, "every=4"}});
  EXPECT_EQ(Describe(StrategyPath(request, false)),
            "0:full 11:leaders=0,1,4 13:every=4");  // every=2 has a leader more
  request.floor = Parse("every=2");
  request.floor_label = 5;
  const StrategyPath path(request, /*at_floor=*/true);
  EXPECT_EQ(Describe(path), "0:every=2 13:every=4");
  EXPECT_EQ(path.label(), 5);
}

TEST(StrategyPathTest, InsertTakesEffectFromAPositionOn) {
  const Request request = NewRequest("full", {{0, "every=2"}, {5, "every=4"}});
  StrategyPath path(request, false);
  path.Insert(4, Parse("leaders=0,2,4"), 7, SwitchCause::kClient);
  // every=2 has leader 6, which is gone.
  EXPECT_EQ(Describe(path), "0:full 4:leaders=0,2,4 15:every=4");
  EXPECT_EQ(path.strategy(), Parse("full"));  // it did not move
  const StrategyPath::Step step = path.Advance();
  EXPECT_TRUE(step.taken);
  EXPECT_EQ(step.cause, SwitchCause::kClient);
  EXPECT_EQ(step.label, 7);
  // At the same position the later one counts.
  path.Insert(4, Parse("leaders=0,4"), 8, SwitchCause::kPressure);
  EXPECT_EQ(path.StrategyAt(4), Parse("every=4"));
  path.Rewind();
  EXPECT_EQ(Describe(path), "0:full 4:every=4");
  EXPECT_EQ(path.strategy(), Parse("full"));
  EXPECT_EQ(path.next_position(), 4);
  path.Advance();
  EXPECT_EQ(path.next_position(), 4);
}

TEST(StrategyPathTest, ASwitchAtTheBeginIsStoodAtOnceRewound) {
  const Request request = NewRequest("full");
  StrategyPath path(request, false);
  path.Insert(0, Parse("every=2"), 7, SwitchCause::kClient);
  path.Insert(0, Parse("every=4"), 8, SwitchCause::kClient);
  path.Rewind();
  EXPECT_EQ(path.strategy(), Parse("every=4"));
  EXPECT_EQ(path.label(), 8);
  EXPECT_EQ(path.next_position(), StrategyPath::kNever);
}

TEST(StrategyPathTest, RestartForgetsWhatWasTaken) {
  const Request request =
      NewRequest("every=2", {{0, "every=4"}, {5, "every=8"}});
  StrategyPath path(request, false);
  path.Advance();
  path.Restart(request, 12, Parse("full"), 9);
  EXPECT_EQ(Describe(path), "0:full 15:every=8");
  EXPECT_EQ(path.label(), 9);
  path.Restart(request, 15, Parse("prefix=2"),
               9);  // the switch at 15 is passed too
  EXPECT_EQ(Describe(path), "0:prefix=2");
}

TEST(StrategyPathTest, RestartDropsSwitchesThatGrow) {
  const Request request = NewRequest("full", {{0, "every=2"}, {5, "every=4"}});
  StrategyPath path(request, false);
  path.Restart(request, 3, Parse("leaders=0,4,5"), 9);
  EXPECT_EQ(Describe(path), "0:leaders=0,4,5 15:every=4");
}

TEST(StrategyPathTest, RestartTakesUpSwitchesThatWereDropped) {
  const Request request = NewRequest("full", {{5, "every=2"}, {9, "every=4"}});
  StrategyPath path(request, false);
  path.Insert(3, Parse("prefix=1"), 7, SwitchCause::kClient);
  EXPECT_EQ(Describe(path), "0:full 3:every=8");
  path.Restart(request, 4, Parse("full"), 9);
  EXPECT_EQ(Describe(path), "0:full 15:every=2 19:every=4");
}

TEST(StrategyPathTest, ASwitchReplacesAPlannedOneToItsPosition) {
  const Request request = NewRequest("full", {{5, "every=2"}});
  StrategyPath path(request, false);
  path.Insert(15, Parse("every=4"), 7, SwitchCause::kClient);
  const StrategyPath::Step step = path.Advance();
  EXPECT_EQ(step.cause, SwitchCause::kClient);
  EXPECT_EQ(path.next_position(), StrategyPath::kNever);
}

TEST(StrategyPathTest, TheLatestStrategyStaysThroughARewind) {
  const Request request =
      NewRequest("full", {{0, "every=2"}, {5, "every=4"}, {9, "every=8"}});
  StrategyPath path(request, false);
  EXPECT_EQ(path.latest(), Parse("full"));
  path.Advance();
  path.Advance();
  EXPECT_EQ(path.latest(), Parse("every=4"));
  path.Rewind();
  EXPECT_EQ(path.strategy(), Parse("full"));
  EXPECT_EQ(path.latest(), Parse("every=4"));
}

TEST(StrategyPathTest, PagesOfBlocksGoByWhereTheyBegin) {
  const Request request = NewRequest("full", {{0, "every=2"}});
  StrategyPath path(request, false);
  // Blocks of 4 positions; the third begins at 8, before the switch at 10.
  EXPECT_EQ(path.PagesAhead(0, 10, 4), 3 * 8);
  EXPECT_EQ(path.PagesAhead(0, 12, 4), 3 * 8);
  EXPECT_EQ(path.PagesAhead(0, 13, 4), 3 * 8 + 4);
  EXPECT_EQ(path.PagesAhead(2, 13, 4), 8 + 4);
  path.Advance();
  EXPECT_EQ(path.PagesAhead(3, 13, 4), 4);
  EXPECT_EQ(path.PagesAhead(3, 12, 4), 0);
}

SharingStrategy AnySubset(const SharingStrategy& of, std::mt19937_64* random) {
  std::string spec = "leaders=0";
  for (int layer = 1; layer < kLayers; ++layer) {
    if (of.is_leader(layer) && (*random)() % 3) {
      spec += "," + std::to_string(layer);
    }
  }
  return Parse(spec);
}

TEST(StrategyPathTest, PagesAheadAgreeWithCountingBlockByBlock) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Request request = NewRequest("full");
    SharingStrategy before = request.strategy;
    int after_generated = random() % 3;
    for (int i = random() % 4; i > 0; --i) {
      before = AnySubset(before, &random);
      request.switches.push_back({after_generated, before});
      after_generated += 1 + random() % 9;
    }
    StrategyPath path(request, false);
    const int64_t page_tokens = 1 + random() % 7;
    for (int64_t position = 0; position < 40;) {
      if (random() % 8 == 0) {
        const SharingStrategy to =
            AnySubset(path.StrategyAt(position), &random);
        path.Insert(position, to, 0, SwitchCause::kClient);
        ASSERT_EQ(path.StrategyAt(position), to);
      }
      while (path.next_position() <= position) path.Advance();
      ASSERT_EQ(path.strategy(), path.StrategyAt(position));
      const int64_t num_blocks = (position + page_tokens - 1) / page_tokens;
      const int64_t end = position + random() % 60;
      int64_t num_pages = 0;
      for (int64_t p = num_blocks * page_tokens; p < end; p += page_tokens) {
        num_pages += path.StrategyAt(p).num_leaders();
      }
      ASSERT_EQ(path.PagesAhead(num_blocks, end, page_tokens), num_pages)
          << "from " << position << " to " << end;
      for (int64_t p = position; p < 60; ++p) {
        ASSERT_TRUE(path.StrategyAt(p + 1).LeadersSubsetOf(path.StrategyAt(p)));
      }
      position += random() % 5;
    }
  }
}

TEST(StrategyPathDeathTest, MisuseEndsTheProcess) {
  const Request request = NewRequest("every=2", {{0, "every=4"}});
  StrategyPath path(request, false);
  EXPECT_DEATH(StrategyPath(request, /*at_floor=*/true), "CHECK");
  EXPECT_DEATH(path.Insert(3, Parse("full"), 0, SwitchCause::kClient), "CHECK");
  path.Advance();
  EXPECT_DEATH(path.Advance(), "CHECK");
  EXPECT_DEATH(path.Insert(3, Parse("every=8"), 0, SwitchCause::kClient),
               "CHECK");
}

}  // namespace
}  // namespace strata
