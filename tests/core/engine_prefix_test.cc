// The prefix cache: what is found in it gives the same tokens as without.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/engine.h"
#include "tests/testing/random_requests.h"
#include "tests/testing/tiny_engine.h"

namespace strata {
namespace {

constexpr int kPageTokens = 4;

// Whether all that `to` caches is, position by position, what `from` caches
// too.
bool Agree(const SharingStrategy& from, const SharingStrategy& to) {
  for (int layer = 0; layer < to.num_layers(); ++layer) {
    if (!to.is_leader(layer)) continue;
    if (!from.is_leader(layer)) return false;
    if (!std::ranges::equal(from.sources().first(layer),
                            to.sources().first(layer))) {
      return false;
    }
  }
  return true;
}

int WholePages(size_t num_tokens) {
  return static_cast<int>(num_tokens / kPageTokens) * kPageTokens;
}

std::vector<int32_t> Joined(std::vector<int32_t> a,
                            const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Runs it with the cache and without, which must not differ, and returns the
// prompt tokens that were found.
int ExpectSameAsWithoutCache(const TinyEngine& tiny, Request request) {
  request.num_top_logprobs = 2;
  const auto with = tiny.Run(request);
  request.bypass_prefix_cache = true;
  const auto without = tiny.Run(request);
  ExpectSame(*with, *without);
  EXPECT_EQ(without->Get(0).end->usage.cached_tokens, 0);
  return with->Get(0).end->usage.cached_tokens;
}

class EnginePrefixTest : public testing::TestWithParam<bool> {
 protected:
  TinyEngine::Options options() const { return {.exact_f32 = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Precisions, EnginePrefixTest, testing::Bool());

TEST_P(EnginePrefixTest, StrategiesShareExactlyWhatTheyAgreeOn) {
  std::mt19937_64 random(5);
  int num_agreeing = 0;
  for (const char* from : kSpecs) {
    const TinyEngine tiny(options());
    for (const char* to : kSpecs) {
      SCOPED_TRACE(std::string(from) + " then " + to);
      std::vector<int32_t> prompt = RandomPrompt(random, 1);
      while (prompt.size() < 30) {
        prompt = Joined(prompt, RandomPrompt(random, 9));
      }
      const Request first = tiny.Greedy(prompt, from, 15);
      const auto generated = tiny.Run(first)->Get(0).tokens;
      // The prompt again, and a conversation that goes on from the answer.
      for (const bool goes_on : {false, true}) {
        Request second = tiny.Greedy(prompt, to, 6);
        int num_cached = static_cast<int>(prompt.size()) - 1;
        if (goes_on) {
          second =
              tiny.Greedy(Joined(Joined(prompt, generated), {3, 4}), to, 6);
          num_cached = static_cast<int>(prompt.size()) + 15 - 1;
        }
        const bool agree = Agree(tiny.Strategy(from), tiny.Strategy(to));
        const int found = ExpectSameAsWithoutCache(tiny, second);
        if (agree) {
          EXPECT_EQ(found, WholePages(num_cached));
          ++num_agreeing;
        } else if (!goes_on) {
          EXPECT_EQ(found, 0);
        } else {
          EXPECT_EQ(found, WholePages(prompt.size()));  // of the turn before
        }
      }
    }
  }
  EXPECT_GE(num_agreeing, 2 * 9);
}

TEST_P(EnginePrefixTest, PrefixStrategiesShareAllTheirPagesWithFull) {
  const TinyEngine tiny(options());
  std::vector<int32_t> prompt(41, 7);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = 3 * i % 50;
  (void)tiny.Run(tiny.Greedy(prompt, "full", 1));
  const LoadReport before = LatestLoad(*tiny.engine);
  for (const char* spec : {"prefix=5", "prefix=2", "leaders=0"}) {
    SCOPED_TRACE(spec);
    EXPECT_EQ(
        tiny.Run(tiny.Greedy(prompt, spec, 1))->Get(0).end->usage.cached_tokens,
        40);
  }
  ExpectNoPageHeld(*tiny.engine);
  // And nothing was stored twice.
  EXPECT_EQ(LatestLoad(*tiny.engine).kv_cached_bytes, before.kv_cached_bytes);
  EXPECT_EQ(before.kv_cached_bytes, 8 * 10 * tiny.page_bytes);
}

TEST_P(EnginePrefixTest, SaltsAndBypassKeepApart) {
  const TinyEngine tiny(options());
  Request request = tiny.Greedy(std::vector<int32_t>(21, 9), "full", 2);
  const auto found = [&](const std::string& salt, bool bypass) {
    request.cache_salt = salt;
    request.bypass_prefix_cache = bypass;
    return tiny.Run(request)->Get(0).end->usage.cached_tokens;
  };
  EXPECT_EQ(found("", true), 0);
  ExpectNoPageHeld(*tiny.engine);
  EXPECT_EQ(LatestLoad(*tiny.engine).kv_cached_bytes, 0);  // nor written
  EXPECT_EQ(found("", false), 0);
  EXPECT_EQ(found("", false), 20);
  EXPECT_EQ(found("a", false), 0);
  EXPECT_EQ(found("a", false), 20);
  EXPECT_EQ(found(std::string("a\0b", 3), false), 0);
  EXPECT_EQ(found("ab", false), 0);
  EXPECT_EQ(found("a", true), 0);
  EXPECT_EQ(found("", true), 0);
}

// A switch in the midst: before it the old key, after it only what is as under
// the new strategy alone.
TEST_P(EnginePrefixTest, AfterASwitchNothingWrongIsFound) {
  for (const auto& [from, to] : {std::pair("full", "every=2"),
                                 {"full", "prefix=3"},
                                 {"every=2", "every=4"}}) {
    for (int after = 0; after < 9; ++after) {
      SCOPED_TRACE(std::string(from) + " to " + to + " after " +
                   std::to_string(after));
      const TinyEngine tiny(options());
      std::vector<int32_t> prompt(19);
      for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = 5 * i % 31;
      Request switched = tiny.Greedy(prompt, from, 16);
      switched.switches.push_back({after, tiny.Strategy(to), 0});
      const auto tokens = Joined(prompt, tiny.Run(switched)->Get(0).tokens);
      const int before = static_cast<int>(prompt.size()) + after;
      const bool agree = Agree(tiny.Strategy(from), tiny.Strategy(to));
      EXPECT_EQ(ExpectSameAsWithoutCache(tiny, tiny.Greedy(tokens, from, 4)),
                WholePages(before));
      EXPECT_EQ(ExpectSameAsWithoutCache(tiny, tiny.Greedy(tokens, to, 4)),
                agree ? WholePages(tokens.size() - 1) : 0);
    }
  }
}

TEST_P(EnginePrefixTest, SamplesShareThePromptEvenWhenBypassing) {
  const TinyEngine tiny(options());
  Request request = tiny.Greedy(std::vector<int32_t>(18, 4), "every=2", 6);
  request.sampling.temperature = 1.0f;
  request.sampling.seed = 4;
  request.num_sequences = 4;
  const auto with = tiny.Run(request);
  request.bypass_prefix_cache = true;
  const LoadReport before = LatestLoad(*tiny.engine);
  const auto without = tiny.Run(request);
  ExpectSame(*with, *without);
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(without->Get(i).end->usage.cached_tokens, 16) << i;
  }
  ExpectNoPageHeld(*tiny.engine);
  EXPECT_EQ(LatestLoad(*tiny.engine).kv_cached_bytes, before.kv_cached_bytes);
}

// A pool so small that what is cached is dropped all the time.
TEST_P(EnginePrefixTest, DropsTheLeastRecentlyUsed) {
  TinyEngine::Options small = options();
  small.num_pages = 8 * 14;  // `full`: 14 blocks
  const TinyEngine tiny(small);
  const auto found = [&](int first_token) {
    std::vector<int32_t> prompt(17, first_token);
    return ExpectSameAsWithoutCache(tiny, tiny.Greedy(prompt, "full", 1));
  };
  EXPECT_EQ(found(1), 0);  // caches 4 blocks, the bypassing run needs 5
  EXPECT_EQ(found(2), 0);
  EXPECT_EQ(found(1), 16);
  EXPECT_EQ(found(3), 0);   // room for two of three
  EXPECT_EQ(found(1), 16);  // used more recently than 2
  EXPECT_LE(found(2), 4);   // of which the end went first
  ExpectNoPageHeld(*tiny.engine);
}

}  // namespace
}  // namespace strata
