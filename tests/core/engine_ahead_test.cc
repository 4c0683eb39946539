// The engine one step ahead of a device that computes by itself: nobody
// notices.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/engine.h"
#include "tests/server/byte_tokenizer.h"
#include "tests/testing/async_cpu_backend.h"
#include "tests/testing/random_requests.h"
#include "tests/testing/tiny_engine.h"

namespace strata {
namespace {

// An engine over a device that computes by itself, and what this was given.
struct AheadEngine {
  explicit AheadEngine(TinyEngine::Options options)
      : tiny(WithBackend(std::move(options))) {}

  TinyEngine::Options WithBackend(TinyEngine::Options options) {
    const cpu::CpuOptions cpu = {.exact_f32 = options.exact_f32};
    options.make_backend = [this, cpu] {
      auto made = std::make_unique<AsyncCpuBackend>(cpu);
      backend = made.get();
      return made;
    };
    return options;
  }

  // Rows that `request` made the device run, and of them those ahead.
  struct Rows {
    int64_t all;
    int64_t ahead;
  };
  Rows RowsOf(const Request& request) const {
    const Rows before = {backend->num_rows(), backend->num_rows_ahead()};
    (void)tiny.Run(request);
    (void)LatestLoad(*tiny.engine);  // nothing is in flight any more
    return {backend->num_rows() - before.all,
            backend->num_rows_ahead() - before.ahead};
  }

  AsyncCpuBackend* backend = nullptr;
  const TinyEngine tiny;
};

// Of any kind, and most of them end at a moment that the host cannot foresee.
Request AnyRequest(const TinyEngine& tiny, std::mt19937_64& random) {
  Request request = RandomRequest(tiny, random);
  if (random() % 2 == 0) {
    std::vector<int32_t> shared(8 + random() % 30);
    for (size_t i = 0; i < shared.size(); ++i) shared[i] = 7 * i % 100;
    request.prompt.insert(request.prompt.begin(), shared.begin(), shared.end());
  }
  request.bypass_prefix_cache = random() % 5 == 0;
  if (request.kind == Request::Kind::kScore) {
    EXPECT_TRUE(FitRequest(tiny.engine->limits(), {}, &request).ok());
    return request;
  }
  const int max_tokens = 1 + static_cast<int>(random() % 40);
  request.stopping.min_tokens = static_cast<int>(random() % 3);
  request.stopping.min_tokens =
      std::min(request.stopping.min_tokens, max_tokens);
  for (int i = 0; i < 20; ++i) {
    request.stopping.stop_tokens.push_back(static_cast<int>(random() % 384));
  }
  if (random() % 3 == 0) {  // of few letters, so that the text is soon there
    request.sampling.allowed_tokens = {'a', 'b', 'c'};
    request.stopping.stop = {"abc", "cb"};
  }
  if (random() % 3 == 0) {
    const int after = static_cast<int>(random() % max_tokens);
    request.switches.push_back({after, tiny.Strategy("leaders=0"), 0});
  }
  EXPECT_TRUE(FitRequest(tiny.engine->limits(), max_tokens, &request).ok());
  return request;
}

void ExpectSameText(CollectingSink& got, CollectingSink& want) {
  for (size_t index = 0; index < want.num_sequences(); ++index) {
    const CollectingSink::Sequence a = got.Get(index), b = want.Get(index);
    EXPECT_EQ(a.text, b.text);
    EXPECT_EQ(a.end->matched_stop, b.end->matched_stop);
  }
}

void ExpectSameUsage(const Usage& got, const Usage& want) {
  EXPECT_EQ(got.prompt_tokens, want.prompt_tokens);
  EXPECT_EQ(got.cached_tokens, want.cached_tokens);
  EXPECT_EQ(got.generated_tokens, want.generated_tokens);
  EXPECT_EQ(got.kv_bytes, want.kv_bytes);
  EXPECT_EQ(got.kv_bytes_full, want.kv_bytes_full);
  EXPECT_EQ(got.strategy, want.strategy);
  EXPECT_EQ(got.preemptions, want.preemptions);
  ASSERT_EQ(got.switches.size(), want.switches.size());
  for (size_t i = 0; i < want.switches.size(); ++i) {
    EXPECT_EQ(got.switches[i].after_generated,
              want.switches[i].after_generated);
    EXPECT_EQ(got.switches[i].strategy, want.switches[i].strategy);
    EXPECT_EQ(got.switches[i].freed_bytes, want.switches[i].freed_bytes);
  }
}

// One request after another: tokens, text, usage, and what it leaves in the
// pool.
TEST(EngineAheadTest, ARequestAndItsTracesAreAsWithout) {
  int num_stopped = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    TinyEngine::Options options;
    options.page_tokens = 4 << seed % 3;
    options.max_batched_tokens = seed % 2 == 0 ? 512 : 7;
    options.num_pages = 1 << 16;  // nothing is pushed out of the cache
    options.make_tokenizer = NewByteTokenizer;
    const TinyEngine behind(options);
    const AheadEngine ahead(options);
    for (int i = 0; i < 60; ++i) {
      SCOPED_TRACE(testing::Message() << "request " << i);
      const Request request = AnyRequest(behind, random);
      const auto want = behind.Run(request);
      const auto got = ahead.tiny.Run(request);
      ExpectSame(*got, *want);
      ExpectSameText(*got, *want);
      for (int k = 0; k < request.num_sequences; ++k) {
        ExpectSameUsage(got->Get(k).end->usage, want->Get(k).end->usage);
        num_stopped += got->Get(k).end->reason == FinishReason::kStop;
      }
      const LoadReport load = LatestLoad(*ahead.tiny.engine);
      EXPECT_EQ(load.kv_cached_bytes,
                LatestLoad(*behind.engine).kv_cached_bytes);
      EXPECT_EQ(load.kv_used_bytes, 0);
      EXPECT_EQ(load.kv_reserved_bytes, 0);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GE(ahead.backend->num_rows_ahead(), ahead.backend->num_rows() / 10);
  }
  EXPECT_GE(num_stopped, 100);
}

// In a crowd that lacks memory, some are cancelled or aborted, some too late
// for their deadline: the others get what they get alone, and so does who comes
// later and finds their pages.
TEST(EngineAheadTest, ACrowdGetsWhatEachGetsAlone) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    TinyEngine::Options options;
    options.make_tokenizer = NewByteTokenizer;
    const TinyEngine alone(options);
    options.optimistic = seed % 2 == 0;
    options.max_batched_tokens = seed % 3 == 0 ? 9 : 128;
    options.num_pages = 8 * (40 + 10 * (seed % 3));
    const AheadEngine ahead(options);
    const TinyEngine& crowd = ahead.tiny;
    if (seed % 3 == 1) crowd.engine->SetPolicy({}, 0.5);
    for (int round = 0; round < 2; ++round) {
      std::vector<Request> requests;
      std::vector<std::shared_ptr<CollectingSink>> sinks;
      for (int i = 0; i < 60; ++i) {
        Request request = AnyRequest(crowd, random);
        request.label = std::to_string(i);
        const uint64_t fate = random() % 6;
        if (fate == 0) {
          request.deadline = absl::Now() + absl::Milliseconds(random() % 60);
        }
        const int when = 1 + static_cast<int>(random() % 20);
        requests.push_back(request);
        auto id = std::make_shared<RequestId>(0);
        sinks.push_back(std::make_shared<CollectingSink>([=, &crowd](int num) {
          if (num != when) return;
          if (fate == 1) crowd.engine->Cancel(*id);
          if (fate == 2) crowd.engine->Abort(request.label, [](int) {});
        }));
        *id = crowd.engine->Submit(request, sinks.back());
        if (random() % 4 == 0) {
          absl::SleepFor(absl::Microseconds(random() % 2000));
        }
      }
      for (size_t i = 0; i < requests.size(); ++i) {
        SCOPED_TRACE(testing::Message() << "request " << i);
        const absl::Status status = sinks[i]->Wait();
        EXPECT_FALSE(sinks[i]->called_after_end());
        if (absl::IsCancelled(status) || absl::IsDeadlineExceeded(status)) {
          continue;
        }
        ASSERT_TRUE(status.ok()) << status;
        Request again = requests[i];
        again.deadline = absl::InfiniteFuture();
        const auto want = alone.Run(again);
        for (int k = 0; k < again.num_sequences; ++k) {
          const CollectingSink::Sequence a = sinks[i]->Get(k);
          CollectingSink::Sequence b = want->Get(k);
          if (a.end->reason == FinishReason::kAborted) {
            ASSERT_LE(a.tokens.size(), b.tokens.size());
            b.tokens.resize(a.tokens.size());
            if (again.kind == Request::Kind::kGenerate) {
              EXPECT_EQ(static_cast<size_t>(a.end->usage.generated_tokens),
                        a.tokens.size());
            }
          }
          EXPECT_EQ(a.tokens, b.tokens);
        }
        if (testing::Test::HasFailure()) return;
      }
      ExpectNoPageHeld(*crowd.engine);
    }
  }
}

// Switches asked for at random moments take place at the position that the
// usage says.
TEST(EngineAheadTest, LiveSwitchesAreAsIfPlanned) {
  int num_switched = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const TinyEngine alone({});
    const AheadEngine ahead({});
    const TinyEngine& crowd = ahead.tiny;
    std::vector<Request> requests;
    std::vector<std::shared_ptr<CollectingSink>> sinks;
    for (int i = 0; i < 12; ++i) {
      Request request = crowd.Greedy(RandomPrompt(random, 30), "full", 30);
      request.label = std::to_string(i);
      const bool is_restart = i % 4 == 3;
      const int when = 2 + static_cast<int>(random() % 28);
      requests.push_back(request);
      sinks.push_back(std::make_shared<CollectingSink>([=, &crowd](int num) {
        if (num != when) return;
        crowd.engine->SwitchStrategy(
            std::to_string(i), crowd.Strategy("every=2"), 0, is_restart,
            [](auto freed) {
              EXPECT_TRUE(freed.ok() || absl::IsNotFound(freed.status()));
            });
      }));
      crowd.engine->Submit(requests[i], sinks[i]);
    }
    for (int i = 0; i < 12; ++i) {
      SCOPED_TRACE(testing::Message() << "request " << i);
      ASSERT_TRUE(sinks[i]->Wait().ok());
      const CollectingSink::Sequence got = sinks[i]->Get(0);
      ASSERT_EQ(got.tokens.size(), 30u);
      ASSERT_LE(got.end->usage.switches.size(), 1u);
      num_switched += !got.end->usage.switches.empty();
      if (i % 4 != 3 || got.end->usage.switches.empty()) {
        ExpectAsIfPlanned(alone, requests[i], *sinks[i]);
        continue;
      }
      // All is run anew, and the last token that it had is run under the new
      // strategy first.
      const int num_kept = got.end->usage.switches[0].after_generated + 1;
      const auto kept = got.tokens.begin() + num_kept;
      std::vector<int32_t> prompt = requests[i].prompt;
      prompt.insert(prompt.end(), got.tokens.begin(), kept);
      const auto want =
          alone.Run(alone.Greedy(prompt, "every=2", 30 - num_kept));
      EXPECT_EQ(std::vector<int32_t>(kept, got.tokens.end()),
                want->Get(0).tokens);
    }
    ExpectNoPageHeld(*crowd.engine);
  }
  EXPECT_GE(num_switched, 60);
}

TEST(EngineAheadTest, OnlyARequestThatStopsWastesARow) {
  const AheadEngine ahead({});
  Request request = ahead.tiny.Greedy({1, 2, 3, 4, 5}, "every=2", 12);
  request.bypass_prefix_cache = true;
  // All but the prompt beside the step before.
  AheadEngine::Rows rows = ahead.RowsOf(request);
  EXPECT_EQ(rows.all, 5 + 12 - 1);
  EXPECT_EQ(rows.ahead, 12 - 1);
  const std::vector<int32_t> tokens = ahead.tiny.Run(request)->Get(0).tokens;
  const int last = 7;
  ASSERT_EQ(std::ranges::find(tokens, tokens[last]) - tokens.begin(), last);
  request.stopping.stop_tokens = {tokens[last]};
  rows = ahead.RowsOf(request);
  EXPECT_EQ(rows.all, 5 + last + 1);
  EXPECT_EQ(rows.ahead, last + 1);
}

// Where the next step depends on a token, the engine waits for it.
TEST(EngineAheadTest, PenaltiesAndSwitchesWaitForTheToken) {
  const AheadEngine ahead({});
  Request request = ahead.tiny.Greedy({1, 2, 3, 4, 5}, "full", 12);
  request.bypass_prefix_cache = true;
  request.switches.push_back({4, ahead.tiny.Strategy("every=2"), 0});
  AheadEngine::Rows rows = ahead.RowsOf(request);
  EXPECT_EQ(rows.all, 5 + 12 - 1);
  EXPECT_EQ(rows.ahead, 12 - 1 - 1);
  request.sampling.frequency_penalty = 0.5f;
  rows = ahead.RowsOf(request);
  EXPECT_EQ(rows.all, 5 + 12 - 1);
  EXPECT_EQ(rows.ahead, 0);
}

}  // namespace
}  // namespace strata
