// The engine as a whole, over a tiny model: whatever runs beside a request, it
// gets what it gets alone.
#include "core/engine.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "kernels/cpu/cpu_ranks.h"
#include "tests/testing/faulty_backend.h"
#include "tests/testing/random_requests.h"
#include "tests/testing/tiny_engine.h"

namespace strata {
namespace {

// Random mixes of requests and strategies, token budgets, pool sizes,
// precisions and threads.
TEST(EngineTest, EachRequestGetsWhatItGetsAlone) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    TinyEngine::Options options;
    options.exact_f32 = seed % 3 != 0;
    options.page_tokens = 4 << seed % 3;
    const TinyEngine alone(options);
    options.threads = 1 + seed % 3;
    options.max_batched_tokens = std::vector<int>{3, 16, 64, 512}[seed % 4];
    options.max_sequences = std::vector<int>{2, 8, 64}[seed % 3];
    options.num_pages = 8 * (80 / options.page_tokens + 2) * (1 + seed % 4);
    const TinyEngine crowd(options);

    std::vector<Request> requests;
    for (int i = 0; i < 30; ++i)
      requests.push_back(RandomRequest(crowd, random));
    std::vector<std::shared_ptr<CollectingSink>> sinks;
    for (const Request& request : requests) {
      sinks.push_back(std::make_shared<CollectingSink>());
      crowd.engine->Submit(request, sinks.back());
      if (random() % 4 == 0)
        absl::SleepFor(absl::Microseconds(random() % 2000));
      ExpectSumsUp(crowd.engine->GetLoad());
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "request " << i);
      ASSERT_TRUE(sinks[i]->Wait().ok());
      ExpectSame(*sinks[i], *alone.Run(requests[i]));
    }
    ExpectNoPageHeld(*crowd.engine);
  }
}

TEST(EngineTest, SampleIIsTheSameForEveryN) {
  const TinyEngine tiny({});
  Request request = tiny.Greedy({5, 6, 7, 8, 9, 10, 11, 12, 13}, "every=2", 12);
  request.sampling = Sampling();
  request.sampling.seed = 99;
  request.num_sequences = 5;
  const auto many = tiny.Run(request);
  ASSERT_EQ(many->num_sequences(), 5u);
  request.num_sequences = 2;
  const auto two = tiny.Run(request);
  request.num_sequences = 1;
  const auto one = tiny.Run(request);
  EXPECT_EQ(many->Get(0).tokens, one->Get(0).tokens);
  EXPECT_EQ(many->Get(1).tokens, two->Get(1).tokens);
  EXPECT_NE(many->Get(0).tokens, many->Get(1).tokens);
  EXPECT_EQ(many->Get(0).end->usage.cached_tokens, 0);
  // Nine positions of prompt: two whole pages of four are shared.
  EXPECT_EQ(many->Get(4).end->usage.cached_tokens, 8);
  ExpectNoPageHeld(*tiny.engine);
}

TEST(EngineTest, CancelsAtAnyMomentLeaveNoPageBehind) {
  const TinyEngine tiny(
      {.num_pages = 300, .max_sequences = 8, .max_batched_tokens = 16});
  std::mt19937_64 random(7);
  std::vector<std::shared_ptr<CollectingSink>> sinks;
  std::vector<std::thread> cancellers;
  for (int i = 0; i < 150; ++i) {
    sinks.push_back(std::make_shared<CollectingSink>());
    const RequestId id =
        tiny.engine->Submit(RandomRequest(tiny, random), sinks.back());
    if (i % 3 == 0) {
      cancellers.emplace_back([&tiny, id, wait = random() % 20000] {
        absl::SleepFor(absl::Microseconds(wait));
        tiny.engine->Cancel(id);
      });
    }
  }
  for (std::thread& canceller : cancellers) canceller.join();
  for (size_t i = 0; i < sinks.size(); ++i) {
    const absl::Status status = sinks[i]->Wait();
    EXPECT_TRUE(status.ok() || (i % 3 == 0 && absl::IsCancelled(status)))
        << status;
    EXPECT_FALSE(sinks[i]->called_after_end());
  }
  ExpectNoPageHeld(*tiny.engine);
}

TEST(EngineTest, IsStalledAlsoInTheFirstStepAfterItWasIdle) {
  absl::Notification end;
  const TinyEngine tiny(
      {.stall_limit = absl::Milliseconds(20), .make_backend = [&] {
         return std::make_unique<FaultyBackend>(
             cpu::MakeCpuRanks({.num_threads = 1}, 1),
             Faults{.on_step = [&](int number) {
               if (number > 1) end.WaitForNotification();
               return absl::OkStatus();
             }});
       }});
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(tiny.engine->health(), EngineHealth::kGood);
  auto sink = std::make_shared<CollectingSink>();
  tiny.engine->Submit(tiny.Greedy({1, 2, 3}, "full", 2), sink);
  const absl::Time give_up = absl::Now() + absl::Seconds(20);
  while (tiny.engine->health() != EngineHealth::kStalled ||
         tiny.engine->GetLoad().waiting != 1) {
    if (absl::Now() > give_up) {
      ADD_FAILURE() << "a step that does not end goes unseen";
      break;
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
  end.Notify();
  EXPECT_TRUE(sink->Wait().ok());
  ExpectNoPageHeld(*tiny.engine);
  EXPECT_EQ(tiny.engine->health(), EngineHealth::kGood);
}

TEST(EngineTest, AbortEndsEveryIndexWithItsUsage) {
  const TinyEngine tiny({});
  Request request = tiny.Greedy({1, 2, 3}, "full", 240);
  request.label = "mine";
  request.num_sequences = 2;
  auto sink = std::make_shared<CollectingSink>();
  tiny.engine->Submit(request, sink);
  sink->WaitForTokens(0, 3);
  int aborted = -1;
  tiny.engine->Abort("mine", [&](int count) { aborted = count; });
  EXPECT_TRUE(sink->Wait().ok());
  EXPECT_EQ(sink->num_sequences(), 2u);
  EXPECT_EQ(sink->Get(0).end->reason, FinishReason::kAborted);
  EXPECT_EQ(sink->Get(1).end->reason, FinishReason::kAborted);
  EXPECT_EQ(static_cast<size_t>(sink->Get(0).end->usage.generated_tokens),
            sink->Get(0).tokens.size());
  tiny.engine->Drain(absl::InfiniteDuration());
  EXPECT_EQ(aborted, 1);
}

TEST(EngineTest, DeadlinesEndWaitingAndRunningRequests) {
  const TinyEngine tiny({.max_sequences = 1});
  Request slow = tiny.Greedy({1, 2, 3}, "full", 250);
  slow.deadline = absl::Now() + absl::Milliseconds(30);
  Request queued = slow;
  queued.deadline = absl::Now() + absl::Milliseconds(5);
  std::vector<std::shared_ptr<CollectingSink>> sinks;
  for (int i = 0; i < 40; ++i) {
    sinks.push_back(std::make_shared<CollectingSink>());
    tiny.engine->Submit(i == 0 ? slow : queued, sinks.back());
  }
  for (const auto& sink : sinks) {
    const absl::Status status = sink->Wait();
    EXPECT_TRUE(status.ok() || absl::IsDeadlineExceeded(status)) << status;
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(sinks.back()->Wait()));
  ExpectNoPageHeld(*tiny.engine);
}

TEST(EngineTest, RefusesWhenTheQueueIsFull) {
  const TinyEngine tiny({.max_sequences = 1, .max_queued_requests = 2});
  std::vector<std::shared_ptr<CollectingSink>> sinks;
  for (int i = 0; i < 6; ++i) {
    sinks.push_back(std::make_shared<CollectingSink>());
    tiny.engine->Submit(tiny.Greedy({1, 2, 3}, "full", 100), sinks.back());
  }
  int refused = 0;
  for (const auto& sink : sinks) {
    const absl::Status status = sink->Wait();
    if (status.ok()) continue;
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    ++refused;
  }
  EXPECT_EQ(refused, 3);  // one runs, two wait
}

TEST(EngineTest, NoneMayWaitIfTheQueueIsZero) {
  const TinyEngine tiny({.max_sequences = 2, .max_queued_requests = 0});
  std::vector<std::shared_ptr<CollectingSink>> sinks;
  for (int i = 0; i < 4; ++i) {
    sinks.push_back(std::make_shared<CollectingSink>());
    tiny.engine->Submit(tiny.Greedy({1, 2, 3}, "full", 200), sinks.back());
  }
  EXPECT_TRUE(sinks[0]->Wait().ok());
  EXPECT_TRUE(sinks[1]->Wait().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(sinks[2]->Wait()));
  EXPECT_TRUE(absl::IsResourceExhausted(sinks[3]->Wait()));
}

TEST(EngineTest, DrainFinishesWhatRunsAndRefusesTheRest) {
  const TinyEngine tiny({.max_sequences = 1});
  std::vector<std::shared_ptr<CollectingSink>> sinks;
  for (int i = 0; i < 4; ++i) {
    sinks.push_back(std::make_shared<CollectingSink>());
    tiny.engine->Submit(tiny.Greedy({1, 2, 3}, "full", 50), sinks.back());
  }
  tiny.engine->Drain(absl::InfiniteDuration());
  for (const auto& sink : sinks) EXPECT_TRUE(sink->Wait().ok());
  auto late = std::make_shared<CollectingSink>();
  tiny.engine->Submit(tiny.Greedy({1}, "full", 1), late);
  EXPECT_TRUE(absl::IsUnavailable(late->Wait()));
}

TEST(EngineTest, DrainCutsWhatIsLeftAfterTheTimeout) {
  const TinyEngine tiny({.max_sequences = 1});
  std::vector<std::shared_ptr<CollectingSink>> sinks;
  for (int i = 0; i < 50; ++i) {
    sinks.push_back(std::make_shared<CollectingSink>());
    tiny.engine->Submit(tiny.Greedy({1, 2, 3}, "full", 250), sinks.back());
  }
  tiny.engine->Drain(absl::Milliseconds(1));
  for (const auto& sink : sinks) {
    const absl::Status status = sink->Wait();
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
  }
  EXPECT_TRUE(absl::IsUnavailable(sinks.back()->Wait()));
}

TEST(EngineTest, ScoreOfOneTokenIsEmpty) {
  const TinyEngine tiny({});
  Request request(tiny.Strategy("full"));
  request.kind = Request::Kind::kScore;
  request.prompt = {5};
  ASSERT_TRUE(FitRequest(tiny.engine->limits(), {}, &request).ok());
  const CollectingSink::Sequence got = tiny.Run(request)->Get(0);
  EXPECT_TRUE(got.logprobs.empty());
  ASSERT_TRUE(got.end.has_value());
  EXPECT_EQ(got.end->usage.kv_bytes, 0);
}

}  // namespace
}  // namespace strata
