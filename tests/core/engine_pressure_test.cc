// Pools that are too small: floors, pre-emption, and that nobody notices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/engine.h"
#include "tests/testing/random_requests.h"
#include "tests/testing/tiny_engine.h"

namespace strata {
namespace {

// Floors, planned switches, salts and shared prompts besides.
Request AnyRequest(const TinyEngine& tiny, std::mt19937_64& random) {
  Request request = RandomRequest(tiny, random);
  request.floor.reset();
  if (random() % 2 == 0) {
    std::vector<int32_t> shared(8 + random() % 30);
    for (size_t i = 0; i < shared.size(); ++i) shared[i] = 7 * i % 100;
    request.prompt.insert(request.prompt.begin(), shared.begin(), shared.end());
  }
  request.cache_salt = random() % 4 == 0 ? "salt" : "";
  request.bypass_prefix_cache = random() % 5 == 0;
  if (request.kind == Request::Kind::kGenerate) {
    if (random() % 2 == 0) {
      const int last = static_cast<int>(random() % 8);
      request.switches.push_back({last, tiny.Strategy("leaders=0"), 0});
    }
  }
  EXPECT_TRUE(
      FitRequest(tiny.engine->limits(), 1 + random() % 40, &request).ok());
  return request;
}

// All come between two steps, so that their timing decides nothing.
void SubmitAtOnce(const TinyEngine& tiny, const std::vector<Request>& requests,
                  std::span<const std::shared_ptr<CollectingSink>> sinks) {
  auto first = std::make_shared<CollectingSink>([&](int num_tokens) {
    if (num_tokens != 1) return;
    for (size_t i = 0; i < requests.size(); ++i) {
      tiny.engine->Submit(requests[i], sinks[i]);
    }
  });
  tiny.engine->Submit(tiny.Greedy({1}, "full", 1), first);
  ASSERT_TRUE(first->Wait().ok());
}

// Hundreds of requests of all kinds against a pool that holds a few.
TEST(EnginePressureTest, PreemptedRequestsGetWhatTheyGetAlone) {
  int num_preemptions = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    TinyEngine::Options options;
    options.exact_f32 = seed % 2 == 0;
    const TinyEngine alone(options);
    options.optimistic = true;
    options.max_batched_tokens = seed % 3 == 0 ? 9 : 128;
    options.num_pages = 8 * (34 + 10 * (seed % 3));
    const TinyEngine crowd(options);
    std::vector<Request> requests;
    std::vector<std::shared_ptr<CollectingSink>> sinks;
    for (int i = 0; i < 120; ++i) {
      requests.push_back(AnyRequest(crowd, random));
      sinks.push_back(std::make_shared<CollectingSink>());
    }
    SubmitAtOnce(crowd, requests, sinks);
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "request " << i);
      ExpectSumsUp(crowd.engine->GetLoad());
      ASSERT_TRUE(sinks[i]->Wait().ok());
      ExpectSame(*sinks[i], *alone.Run(requests[i]));
      for (int k = 0; k < requests[i].num_sequences; ++k) {
        const Usage usage = sinks[i]->Get(k).end->usage;
        num_preemptions += usage.preemptions;
        EXPECT_LE(usage.preemptions, 1);
      }
    }
    ExpectNoPageHeld(*crowd.engine);
  }
  EXPECT_GE(num_preemptions, 30);
}

TEST(EnginePressureTest, OnlyRequestsWithFloorsAreDemoted) {
  int num_switched = 0, num_started_lower = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    TinyEngine::Options options;
    const TinyEngine alone(options);
    options.optimistic = seed % 2 == 0;
    options.num_pages = 8 * 40;
    const TinyEngine crowd(options);
    if (seed % 4 >= 2) crowd.engine->SetPolicy({}, 0.5);
    std::vector<Request> requests;
    std::vector<std::shared_ptr<CollectingSink>> sinks;
    for (int i = 0; i < 60; ++i) {
      Request request =
          crowd.Greedy(RandomPrompt(random, 40), "full", 1 + random() % 60);
      if (random() % 2) request.floor = crowd.Strategy("every=4");
      requests.push_back(request);
      sinks.push_back(std::make_shared<CollectingSink>());
    }
    SubmitAtOnce(crowd, requests, sinks);
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "request " << i);
      ASSERT_TRUE(sinks[i]->Wait().ok());
      const Usage usage = sinks[i]->Get(0).end->usage;
      if (!requests[i].floor) {
        EXPECT_EQ(usage.strategy, "full");
        EXPECT_TRUE(usage.switches.empty());
      }
      num_switched += !usage.switches.empty();
      num_started_lower +=
          usage.switches.empty() && usage.strategy == "every=4";
      ExpectAsIfPlanned(alone, requests[i], *sinks[i]);
    }
    ExpectNoPageHeld(*crowd.engine);
  }
  EXPECT_GE(num_switched, 20);
  EXPECT_GE(num_started_lower, 20);
}

TEST(EnginePressureTest, NobodyIsDemotedWithoutPressureOrAgainstThePolicy) {
  for (const bool policy : {true, false}) {
    const TinyEngine tiny({.num_pages = policy ? 4096 : 8 * 20});
    tiny.engine->SetPolicy(policy, {});
    std::vector<std::shared_ptr<CollectingSink>> sinks;
    for (int i = 0; i < 20; ++i) {
      Request request = tiny.Greedy({1, 2, 3, i}, "full", 30);
      request.floor = tiny.Strategy("leaders=0");
      sinks.push_back(std::make_shared<CollectingSink>());
      tiny.engine->Submit(request, sinks.back());
    }
    for (const auto& sink : sinks) {
      ASSERT_TRUE(sink->Wait().ok());
      EXPECT_EQ(sink->Get(0).end->usage.strategy, "full");
    }
  }
}

TEST(EnginePressureTest, ARequestThatOnlyItsFloorFitsStartsThere) {
  const TinyEngine tiny({.num_pages = 40});
  Request request(tiny.Strategy("full"));
  request.prompt = std::vector<int32_t>(20, 3);
  request.sampling.temperature = 0;
  request.stopping.ignore_eos = true;
  const absl::Status refused = FitRequest(tiny.engine->limits(), 11, &request);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  // 30 positions: 8 blocks of 8 leaders.
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("64"));
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("40"));
  request.floor = tiny.Strategy("every=4");
  ASSERT_TRUE(FitRequest(tiny.engine->limits(), 11, &request).ok());
  const auto got = tiny.Run(request)->Get(0);
  EXPECT_EQ(got.end->usage.strategy, "every=4");
  EXPECT_TRUE(got.end->usage.switches.empty());
  EXPECT_EQ(
      got.tokens,
      tiny.Run(tiny.Greedy(request.prompt, "every=4", 11))->Get(0).tokens);
}

// A client's switch holds through a pre-emption.
TEST(EnginePressureTest, SwitchesOfPreemptedRequestsHold) {
  int num_both = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const TinyEngine alone({});
    const TinyEngine crowd({.num_pages = 8 * 30, .optimistic = true});
    std::vector<Request> requests;
    std::vector<std::shared_ptr<CollectingSink>> sinks;
    for (int i = 0; i < 30; ++i) {
      Request request = crowd.Greedy(RandomPrompt(random, 30), "full", 60);
      request.label = std::to_string(i);
      requests.push_back(request);
      const int when = 2 + static_cast<int>(random() % 50);
      const int whom = static_cast<int>(random() % 30);
      sinks.push_back(
          std::make_shared<CollectingSink>([&crowd, when, whom](int num) {
            if (num != when) return;
            crowd.engine->SwitchStrategy(
                std::to_string(whom), crowd.Strategy("every=2"), 0, false,
                [](auto freed) {
                  EXPECT_TRUE(freed.ok() || absl::IsNotFound(freed.status()));
                });
          }));
    }
    SubmitAtOnce(crowd, requests, sinks);
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "request " << i);
      ASSERT_TRUE(sinks[i]->Wait().ok());
      const Usage usage = sinks[i]->Get(0).end->usage;
      num_both += usage.preemptions > 0 && !usage.switches.empty();
      // A switch while queued: all is run under the new strategy.
      Request again = requests[i];
      if (usage.switches.size() == 1 && usage.switches[0].freed_bytes == 0 &&
          usage.preemptions == 0) {
        again = alone.Greedy(again.prompt, usage.strategy, 60);
        EXPECT_EQ(sinks[i]->Get(0).tokens, alone.Run(again)->Get(0).tokens);
        continue;
      }
      ExpectAsIfPlanned(alone, again, *sinks[i]);
    }
    ExpectNoPageHeld(*crowd.engine);
  }
  EXPECT_GE(num_both, 10);
}

TEST(EnginePressureTest, WhatEndsBeforeItRunsAgainTellsItsLatestStrategy) {
  const TinyEngine tiny({.num_pages = 8 * 12, .optimistic = true});
  Request request = tiny.Greedy({1, 2, 3, 4}, "full", 40);
  request.label = "mine";
  auto second = std::make_shared<CollectingSink>([&](int num_tokens) {
    if (num_tokens != 3) return;
    tiny.engine->SwitchStrategy("mine", tiny.Strategy("prefix=6"), 0, false,
                                [](auto freed) { EXPECT_TRUE(freed.ok()); });
  });
  auto first = std::make_shared<CollectingSink>([&](int num_tokens) {
    if (num_tokens == 3) tiny.engine->Submit(request, second);
    if (num_tokens == 37) tiny.engine->Abort("mine", [](int) {});
  });
  tiny.engine->Submit(tiny.Greedy({5, 6, 7, 8}, "full", 40), first);
  ASSERT_TRUE(first->Wait().ok());
  ASSERT_TRUE(second->Wait().ok());
  const SequenceEnd end = *second->Get(0).end;
  EXPECT_EQ(end.reason, FinishReason::kAborted);
  EXPECT_EQ(end.usage.preemptions, 1);
  ASSERT_EQ(end.usage.switches.size(), 1u);
  EXPECT_EQ(end.usage.strategy, "prefix=6");
}

// A client's switch of a request that waits is on record; so what the server
// then starts it under is too.
TEST(EnginePressureTest, AFloorAfterAClientsSwitchIsOnRecord) {
  const TinyEngine tiny({.num_pages = 8 * 11 + 12});
  Request request = tiny.Greedy({1, 2, 3, 4}, "every=2", 40);
  request.floor = tiny.Strategy("leaders=0");
  request.label = "mine";
  auto second = std::make_shared<CollectingSink>();
  auto first = std::make_shared<CollectingSink>([&](int num_tokens) {
    if (num_tokens != 3) return;
    tiny.engine->Submit(request, second);
    tiny.engine->SwitchStrategy("mine", tiny.Strategy("full"), 0, true,
                                [](auto freed) { EXPECT_TRUE(freed.ok()); });
  });
  tiny.engine->Submit(tiny.Greedy({5, 6, 7, 8}, "full", 40), first);
  ASSERT_TRUE(first->Wait().ok());
  ASSERT_TRUE(second->Wait().ok());
  const Usage usage = second->Get(0).end->usage;
  ASSERT_EQ(usage.switches.size(), 2u);
  EXPECT_EQ(usage.switches[0].strategy, "full");
  EXPECT_EQ(usage.switches[1].strategy, "every=8");
  EXPECT_EQ(usage.switches[1].after_generated, 0);
  EXPECT_EQ(usage.strategy, "every=8");
}

}  // namespace
}  // namespace strata
