// The engine against PyTorch: every model family, every strategy of
// tests/golden.
#include "tests/testing/golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/testing/tiny_engine.h"

namespace strata {
namespace {

class GoldenTest : public testing::TestWithParam<const char*> {};

// Logits of every position of the prompt (so without the trailing skip), the
// scored token and the 20 best of each; in one chunk and in chunks of 7
// positions.
TEST_P(GoldenTest, ScoresAreThoseOfPyTorch) {
  const Golden golden(GetParam());
  for (int budget : {512, 7}) {
    const TinyEngine tiny({.model = GetParam(), .max_batched_tokens = budget});
    for (const auto& [spec, plan] : golden.json["plans"].items()) {
      SCOPED_TRACE(spec);
      Request request(tiny.Strategy(spec));
      request.kind = Request::Kind::kScore;
      request.prompt = golden.prompt();
      request.num_top_logprobs = 20;
      ASSERT_TRUE(FitRequest(tiny.engine->limits(), {}, &request).ok());
      const CollectingSink::Sequence got = tiny.Run(request)->Get(0);
      ASSERT_EQ(got.logprobs.size(), request.prompt.size() - 1);
      for (size_t i = 0; i < got.logprobs.size(); ++i) {
        const std::vector<double> want = golden.Logprobs("logits/" + spec, i);
        EXPECT_EQ(got.logprobs[i].token, request.prompt[i + 1]);
        const auto near = [&](int32_t token, float logprob) {
          // A probability next to one has a logarithm that is all rounding.
          return std::abs(logprob - want[token]) <=
                 1e-6 + 1e-3 * std::abs(want[token]);
        };
        EXPECT_TRUE(near(got.logprobs[i].token, got.logprobs[i].logprob));
        ASSERT_EQ(got.logprobs[i].num_top, 20);
        for (int k = 0; k < 20; ++k) {
          const TokenLogprob& top = got.logprobs[i].top[k];
          EXPECT_TRUE(near(top.token, top.logprob))
              << "position " << i << ", best " << k << ": got " << top.logprob
              << ", want " << want[top.token];
        }
      }
    }
  }
}

// Greedy continuations, with the trailing skip, as far as no two logits are
// closer than rounding can decide.
TEST_P(GoldenTest, GreedyTokensAreThoseOfPyTorch) {
  const Golden golden(GetParam());
  int compared = 0;
  for (int budget : {512, 5}) {
    const TinyEngine tiny({.model = GetParam(), .max_batched_tokens = budget});
    for (const auto& [spec, plan] : golden.json["plans"].items()) {
      if (plan["min_margin"].get<double>() < 1e-3) continue;
      ++compared;
      SCOPED_TRACE(spec);
      const auto want = plan["greedy"].get<std::vector<int32_t>>();
      const auto got = tiny.Run(tiny.Greedy(golden.prompt(), spec,
                                            static_cast<int>(want.size())))
                           ->Get(0);
      EXPECT_EQ(got.tokens, want);
      const int leaders = plan["num_leaders"];
      const int positions = golden.prompt().size() + want.size() - 1;
      EXPECT_EQ(got.end->usage.kv_bytes,
                leaders * ((positions + 3) / 4) * tiny.page_bytes);
    }
  }
  EXPECT_GE(compared, 8);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, testing::ValuesIn(kGoldenModels));

}  // namespace
}  // namespace strata
