// Live switches: at every position, in every state of a request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/engine.h"
#include "tests/testing/golden.h"
#include "tests/testing/random_requests.h"
#include "tests/testing/tiny_engine.h"

namespace strata {
namespace {

constexpr char kModel[] = "qwen3-qknorm";

// Runs `request` in chunks of one row beside another request, which gives a
// moment between any two of its positions, and switches it when `position` of
// them are cached.
CollectingSink::Sequence RunAndSwitch(const TinyEngine& tiny, Request request,
                                      int position, const SharingStrategy& to) {
  request.label = "mine";
  request.bypass_prefix_cache = true;
  auto sink = std::make_shared<CollectingSink>();
  constexpr int kFirst = 3;  // the other's tokens before the request comes
  auto clock = std::make_shared<CollectingSink>([&](int num_tokens) {
    if (num_tokens == kFirst) tiny.engine->Submit(request, sink);
    if (num_tokens != kFirst + position) return;
    tiny.engine->SwitchStrategy("mine", to, 0, false, [&](auto freed) {
      const int last = request.MaxPositions();
      if (position < last) {
        EXPECT_TRUE(freed.ok()) << freed.status();
      } else {
        EXPECT_TRUE(absl::IsNotFound(freed.status()));
      }
    });
  });
  Request other = tiny.Greedy({1, 2, 3}, "full", 100);
  other.label = "clock";
  const RequestId id = tiny.engine->Submit(other, clock);
  EXPECT_TRUE(sink->Wait().ok());
  tiny.engine->Cancel(id);
  (void)clock->Wait();
  return sink->Get(0);
}

// tests/golden/make_switches.py made the tokens, with PyTorch.
TEST(EngineSwitchTest, AtEveryPositionTheTokensAreThoseOfPyTorch) {
  const Golden golden(kModel);
  nlohmann::json trajectories;
  std::ifstream("tests/golden/qwen3-qknorm/switches.json") >> trajectories;
  ASSERT_EQ(trajectories.size(), 123u);
  // Two rows a step: the other request's token, and one of ours.
  const TinyEngine tiny(
      {.model = kModel, .page_tokens = 8, .max_batched_tokens = 2});
  int num_compared = 0;
  for (const nlohmann::json& want : trajectories) {
    if (want["min_margin"].get<double>() < 1e-3) continue;
    SCOPED_TRACE(want.dump());
    const std::string from = want["from"], to = want["to"];
    const auto tokens = want["tokens"].get<std::vector<int32_t>>();
    const int num_prompt = golden.prompt().size();
    const int position = want["position"];
    const Request request = tiny.Greedy(golden.prompt(), from, tokens.size());
    const CollectingSink::Sequence got =
        RunAndSwitch(tiny, request, position, tiny.Strategy(to));
    EXPECT_EQ(got.tokens, tokens);
    const Usage& usage = got.end->usage;
    if (position < request.MaxPositions()) {
      ASSERT_EQ(usage.switches.size(), 1u);
      EXPECT_EQ(usage.switches[0].after_generated,
                std::max(0, position - num_prompt));
      EXPECT_EQ(usage.strategy, tiny.Strategy(to).canonical());
    } else {
      EXPECT_TRUE(usage.switches.empty());
      EXPECT_EQ(usage.strategy, tiny.Strategy(from).canonical());
    }
    ++num_compared;
  }
  EXPECT_GE(num_compared, 115);
}

// A planned switch in any chunking gives the same bits.
TEST(EngineSwitchTest, PlannedSwitchesDoNotDependOnChunksOrCompany) {
  std::vector<std::shared_ptr<CollectingSink>> want;
  for (int budget : {512, 7, 1}) {
    const TinyEngine tiny({.max_batched_tokens = budget});
    std::vector<std::shared_ptr<CollectingSink>> got;
    for (int k = 0; k < 12; ++k) {
      Request request = tiny.Greedy({9, 8, 7, 6, 5, 4, 3, 2, 1}, "full", 12);
      request.num_top_logprobs = 1;
      request.switches.push_back({k, tiny.Strategy("every=2"), 0});
      request.switches.push_back({k + 3, tiny.Strategy("every=4"), 0});
      got.push_back(std::make_shared<CollectingSink>());
      tiny.engine->Submit(request, got.back());
    }
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(got[i]->Wait().ok());
      SCOPED_TRACE(testing::Message() << "budget " << budget << ", k " << i);
      if (want.size() > i) ExpectSame(*got[i], *want[i]);
      // A switch that nothing is run after does not take place.
      const size_t num_switches = (i < 11) + (i + 3 < 11);
      EXPECT_EQ(got[i]->Get(0).end->usage.switches.size(), num_switches);
    }
    if (want.empty()) want = got;
  }
}

TEST(EngineSwitchTest, QueuedRequestsStartUnderTheNewStrategy) {
  const TinyEngine tiny({.max_sequences = 1});
  Request queued = tiny.Greedy({1, 2, 3, 4, 5}, "full", 8);
  queued.label = "queued";
  auto second = std::make_shared<CollectingSink>();
  absl::StatusOr<int64_t> freed = absl::UnknownError("not called");
  auto first = std::make_shared<CollectingSink>([&](int num_tokens) {
    if (num_tokens == 2) tiny.engine->Submit(queued, second);
    if (num_tokens != 4) return;
    tiny.engine->SwitchStrategy("queued", tiny.Strategy("every=4"), 0, false,
                                [&](auto status) { freed = status; });
  });
  tiny.engine->Submit(tiny.Greedy({7}, "full", 20), first);
  ASSERT_TRUE(first->Wait().ok());
  ASSERT_TRUE(second->Wait().ok());
  ASSERT_TRUE(freed.ok()) << freed.status();
  EXPECT_EQ(*freed, 0);  // it held nothing
  const auto want = tiny.Run(tiny.Greedy({1, 2, 3, 4, 5}, "every=4", 8));
  EXPECT_EQ(second->Get(0).tokens, want->Get(0).tokens);
  const Usage usage = second->Get(0).end->usage;
  EXPECT_EQ(usage.strategy, "every=4");
  EXPECT_EQ(usage.kv_bytes, want->Get(0).end->usage.kv_bytes);
  ASSERT_EQ(usage.switches.size(), 1u);
  EXPECT_EQ(usage.switches[0].after_generated, 0);
}

TEST(EngineSwitchTest, RefusalsChangeNothing) {
  const TinyEngine tiny({});
  Request request = tiny.Greedy({1, 2, 3, 4, 5}, "every=2", 20);
  const auto want = tiny.Run(request)->Get(0).tokens;
  request.label = "mine";
  std::vector<absl::Status> statuses;
  const auto ask = [&](const char* label, const char* spec) {
    tiny.engine->SwitchStrategy(
        label, tiny.Strategy(spec), 0, false,
        [&](auto freed) { statuses.push_back(freed.status()); });
  };
  auto sink = std::make_shared<CollectingSink>([&](int num_tokens) {
    if (num_tokens != 5) return;
    ask("other", "leaders=0");
    ask("", "leaders=0");
    ask("mine", "full");
    ask("mine", "every=3");
    ask("mine", "every=2");  // what it has: no switch
  });
  tiny.engine->Submit(request, sink);
  ASSERT_TRUE(sink->Wait().ok());
  ASSERT_EQ(statuses.size(), 5u);
  EXPECT_TRUE(absl::IsNotFound(statuses[0])) << statuses[0];
  EXPECT_TRUE(absl::IsNotFound(statuses[1])) << statuses[1];
  EXPECT_TRUE(absl::IsFailedPrecondition(statuses[2])) << statuses[2];
  EXPECT_TRUE(absl::IsFailedPrecondition(statuses[3])) << statuses[3];
  EXPECT_TRUE(statuses[4].ok()) << statuses[4];
  EXPECT_EQ(sink->Get(0).tokens, want);
  EXPECT_TRUE(sink->Get(0).end->usage.switches.empty());
}

// After a recomputing switch a request goes on as if all that it has so far had
// been its prompt under the new strategy.
TEST(EngineSwitchTest, RecomputesUnderAnyStrategy) {
  const TinyEngine tiny({});
  for (const char* to : {"full", "every=3", "leaders=0"}) {
    SCOPED_TRACE(to);
    Request request = tiny.Greedy({11, 12, 13, 14, 15}, "every=4", 20);
    request.label = "mine";
    absl::StatusOr<int64_t> freed = absl::UnknownError("not called");
    auto sink = std::make_shared<CollectingSink>([&](int num_tokens) {
      if (num_tokens != 6) return;
      tiny.engine->SwitchStrategy("mine", tiny.Strategy(to), 0, true,
                                  [&](auto status) { freed = status; });
    });
    tiny.engine->Submit(request, sink);
    ASSERT_TRUE(sink->Wait().ok());
    ASSERT_TRUE(freed.ok()) << freed.status();
    const CollectingSink::Sequence got = sink->Get(0);
    ASSERT_EQ(got.tokens.size(), 20u);
    std::vector<int32_t> prompt = request.prompt;
    prompt.insert(prompt.end(), got.tokens.begin(), got.tokens.begin() + 6);
    const auto want = tiny.Run(tiny.Greedy(prompt, to, 14))->Get(0).tokens;
    EXPECT_EQ(std::vector<int32_t>(got.tokens.begin() + 6, got.tokens.end()),
              want);
    const Usage& usage = got.end->usage;
    EXPECT_EQ(usage.strategy, tiny.Strategy(to).canonical());
    EXPECT_EQ(usage.preemptions, 0);
    ASSERT_EQ(usage.switches.size(), 1u);
    EXPECT_EQ(usage.switches[0].after_generated, 5);
  }
}

TEST(EngineSwitchTest, WhatWaitsToBeRecomputedIsCountedAsWaiting) {
  const TinyEngine tiny({.num_pages = 8 * 13});
  Request request = tiny.Greedy({1, 2, 3, 4}, "leaders=0", 40);
  request.label = "mine";
  auto second = std::make_shared<CollectingSink>();
  LoadReport before, after;
  auto first = std::make_shared<CollectingSink>([&](int num_tokens) {
    if (num_tokens == 5) tiny.engine->Submit(request, second);
    if (num_tokens == 10) {
      before = tiny.engine->GetLoad();
      tiny.engine->SwitchStrategy("mine", tiny.Strategy("full"), 0, true,
                                  [](auto freed) { EXPECT_TRUE(freed.ok()); });
    }
    if (num_tokens == 15) after = tiny.engine->GetLoad();
  });
  tiny.engine->Submit(tiny.Greedy({5, 6, 7, 8}, "full", 40), first);
  ASSERT_TRUE(first->Wait().ok());
  ASSERT_TRUE(second->Wait().ok());
  EXPECT_EQ(before.running, 2);
  EXPECT_EQ(before.waiting, 0);
  EXPECT_EQ(after.running, 1);
  EXPECT_EQ(after.waiting, 1);
}

TEST(EngineSwitchTest, ThePlanComesBackWithItsLeaders) {
  const TinyEngine tiny({});
  Request request = tiny.Greedy({1, 2, 3, 4, 5}, "full", 20);
  request.label = "mine";
  request.switches.push_back({12, tiny.Strategy("every=2"), 0});
  auto sink = std::make_shared<CollectingSink>([&](int num_tokens) {
    const auto ask = [&](const char* to, bool recompute) {
      tiny.engine->SwitchStrategy("mine", tiny.Strategy(to), 0, recompute,
                                  [](auto freed) { EXPECT_TRUE(freed.ok()); });
    };
    if (num_tokens == 4) ask("leaders=0", false);
    if (num_tokens == 7) ask("full", true);
  });
  tiny.engine->Submit(request, sink);
  ASSERT_TRUE(sink->Wait().ok());
  const Usage usage = sink->Get(0).end->usage;
  ASSERT_EQ(usage.switches.size(), 3u);
  EXPECT_EQ(usage.switches[2].after_generated, 12);
  EXPECT_EQ(usage.strategy, "every=2");
}

TEST(EngineSwitchTest, ARefusalForThePlansSakeSaysSo) {
  const TinyEngine tiny({});
  Request request = tiny.Greedy({1, 2, 3, 4, 5}, "full", 20);
  request.label = "mine";
  request.switches.push_back({4, tiny.Strategy("leaders=0,1"), 0});
  absl::Status status;
  auto sink = std::make_shared<CollectingSink>([&](int num_tokens) {
    if (num_tokens != 3) return;
    tiny.engine->SwitchStrategy("mine", tiny.Strategy("leaders=0,2,3,4"), 0,
                                false,
                                [&](auto freed) { status = freed.status(); });
  });
  tiny.engine->Submit(request, sink);
  ASSERT_TRUE(sink->Wait().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("a planned switch"));
}

}  // namespace
}  // namespace strata
