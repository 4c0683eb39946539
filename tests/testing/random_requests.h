#ifndef TESTS_TESTING_RANDOM_REQUESTS_H_
#define TESTS_TESTING_RANDOM_REQUESTS_H_

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/testing/collecting_sink.h"
#include "tests/testing/tiny_engine.h"

// Random requests to an engine, and what holds whatever they are.

namespace strata {

inline constexpr const char* kSpecs[] = {"full",
                                         "every=2",
                                         "every=4",
                                         "keep=0.25",
                                         "prefix=3",
                                         "leaders=0,5",
                                         "sources=0,1,0,3,3,5,6,7"};

inline std::vector<int32_t> RandomPrompt(std::mt19937_64& random,
                                         int max_length) {
  std::vector<int32_t> prompt(1 + random() % max_length);
  for (int32_t& token : prompt) token = static_cast<int32_t>(random() % 384);
  return prompt;
}

// Of any kind, for the model llama-tied.
inline Request RandomRequest(const TinyEngine& tiny, std::mt19937_64& random) {
  Request request(tiny.Strategy(kSpecs[random() % std::size(kSpecs)]));
  request.prompt = RandomPrompt(random, 60);
  request.sampling.seed = random();
  request.sampling.temperature = random() % 3 == 0 ? 0.0f : 1.2f;
  if (random() % 3 == 0) request.sampling.top_k = 20;
  if (random() % 3 == 0) request.sampling.top_p = 0.8f;
  if (random() % 4 == 0) request.sampling.repetition_penalty = 1.3f;
  if (random() % 4 == 0) request.sampling.frequency_penalty = 0.5f;
  request.num_sequences = random() % 4 == 0 ? 1 + random() % 4 : 1;
  request.num_top_logprobs = 2;
  request.priority = static_cast<int>(random() % 5) - 2;
  if (random() % 5 == 0) {
    request.kind = Request::Kind::kScore;
    request.num_sequences = 1;
  }
  EXPECT_TRUE(
      FitRequest(tiny.engine->limits(), 1 + random() % 20, &request).ok());
  return request;
}

inline void ExpectSame(CollectingSink& got, CollectingSink& want) {
  ASSERT_EQ(got.num_sequences(), want.num_sequences());
  for (size_t index = 0; index < want.num_sequences(); ++index) {
    const CollectingSink::Sequence a = got.Get(index), b = want.Get(index);
    EXPECT_EQ(a.tokens, b.tokens);
    ASSERT_EQ(a.logprobs.size(), b.logprobs.size());
    for (size_t i = 0; i < a.logprobs.size(); ++i) {
      // The same bits, not merely near.
      EXPECT_EQ(a.logprobs[i].logprob, b.logprobs[i].logprob);
      EXPECT_EQ(a.logprobs[i].num_top, b.logprobs[i].num_top);
    }
    ASSERT_TRUE(a.end.has_value() && b.end.has_value());
    EXPECT_EQ(a.end->reason, b.end->reason);
    EXPECT_EQ(a.end->usage.kv_bytes, b.end->usage.kv_bytes);
    EXPECT_EQ(a.end->usage.generated_tokens, b.end->usage.generated_tokens);
  }
  EXPECT_FALSE(got.called_after_end());
}

// What a request gave that was switched or demoted, as one gives that planned
// it.
inline void ExpectAsIfPlanned(const TinyEngine& alone, const Request& request,
                              CollectingSink& got) {
  const Usage usage = got.Get(0).end->usage;
  Request again(alone.Strategy(
      usage.switches.empty() ? usage.strategy : request.strategy.canonical()));
  again.kind = request.kind;
  again.prompt = request.prompt;
  again.sampling = request.sampling;
  again.stopping = request.stopping;
  again.num_top_logprobs = request.num_top_logprobs;
  for (const SwitchRecord& record : usage.switches) {
    if (record.after_generated == 0) return;  // perhaps within the prompt
    again.switches.push_back(
        {record.after_generated, alone.Strategy(record.strategy), 0});
  }
  const auto want = alone.Run(again);
  EXPECT_EQ(got.Get(0).tokens, want->Get(0).tokens);
}

// The state after all that was done so far.
inline LoadReport LatestLoad(Engine& engine) {
  for (int i = 0; i < 2; ++i) {  // the first call's step has been reported then
    absl::Notification done;
    engine.Abort("nobody's", [&](int) { done.Notify(); });
    done.WaitForNotification();
  }
  return engine.GetLoad();
}

inline void ExpectNoPageHeld(const Engine& engine) {
  LoadReport load = engine.GetLoad();
  const auto is_busy = [&load] {
    return load.running > 0 || load.waiting > 0 || load.kv_used_bytes > 0;
  };
  for (int i = 0; i < 1000 && is_busy(); ++i) {
    absl::SleepFor(absl::Milliseconds(5));
    load = engine.GetLoad();
  }
  EXPECT_EQ(load.running, 0);
  EXPECT_EQ(load.waiting, 0);
  EXPECT_EQ(load.kv_used_bytes, 0);
  EXPECT_EQ(load.kv_reserved_bytes, 0);
  EXPECT_EQ(load.kv_free_bytes + load.kv_cached_bytes, load.kv_pool_bytes);
}

inline void ExpectSumsUp(const LoadReport& load) {
  EXPECT_EQ(load.kv_used_bytes + load.kv_reserved_bytes + load.kv_cached_bytes +
                load.kv_free_bytes,
            load.kv_pool_bytes);
  int64_t used = 0;
  for (const LoadReport::Strategy& strategy : load.strategies) {
    used += strategy.kv_used_bytes;
  }
  EXPECT_EQ(used, load.kv_used_bytes);
}

}  // namespace strata

#endif  // TESTS_TESTING_RANDOM_REQUESTS_H_
