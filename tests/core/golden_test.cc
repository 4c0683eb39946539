// The engine against PyTorch: every model family, every strategy of
// tests/golden.
#include "tests/testing/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/testing/tiny_engine.h"

namespace strata {
namespace {

struct GoldenCase {
  std::string model;
  int num_ranks = 1;
};

class GoldenTest : public testing::TestWithParam<GoldenCase> {
 protected:
  const Golden golden{GetParam().model};

  TinyEngine MakeEngine(int max_batched_tokens = 512) const {
    return TinyEngine({.model = GetParam().model,
                       .num_ranks = GetParam().num_ranks,
                       .max_batched_tokens = max_batched_tokens});
  }
};

// Logits of every position of the prompt (so without the trailing skip), the
// scored token and the 20 best of each; in one chunk and in chunks of 7
// positions.
TEST_P(GoldenTest, ScoresAreThoseOfPyTorch) {
  for (int budget : {512, 7}) {
    const TinyEngine tiny = MakeEngine(budget);
    for (const auto& [spec, plan] : golden.plans()) {
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
  int compared = 0;
  for (int budget : {512, 5}) {
    const TinyEngine tiny = MakeEngine(budget);
    for (const auto& [spec, plan] : golden.plans()) {
      if (!plan.IsClear()) continue;
      ++compared;
      SCOPED_TRACE(spec);
      const std::vector<int32_t>& want = plan.greedy;
      const auto got = tiny.Run(tiny.Greedy(golden.prompt(), spec,
                                            static_cast<int>(want.size())))
                           ->Get(0);
      EXPECT_EQ(got.tokens, want);
      const int leaders = plan.num_leaders;
      const int positions = golden.prompt().size() + want.size() - 1;
      EXPECT_EQ(got.end->usage.kv_bytes,
                leaders * ((positions + 3) / 4) * tiny.page_bytes);
    }
  }
  EXPECT_GE(compared, 8);
}

void ExpectDemoted(const Golden& golden, int which,
                   const CollectingSink::Sequence& got) {
  const Golden::Demotion& demotion = golden.demotions()[which];
  EXPECT_EQ(got.tokens, demotion.tokens);
  ASSERT_EQ(got.logprobs.size(), got.tokens.size());
  for (size_t i = 1; i < got.tokens.size(); ++i) {
    // Row i of the golden logits is what follows token i.
    const std::vector<double> want =
        golden.Logprobs("demote/" + std::to_string(which), i - 1);
    EXPECT_NEAR(got.logprobs[i].logprob, want[got.tokens[i]], 1e-3);
  }
}

// Prompt and first five tokens under one strategy, the rest under another:
// planned by the request, and asked for by a call just then.
TEST_P(GoldenTest, DemotionsAreThoseOfPyTorch) {
  const TinyEngine tiny = MakeEngine();
  int which = 0;
  for (const Golden::Demotion& demotion : golden.demotions()) {
    const auto& [from, to, after, tokens] = demotion;
    SCOPED_TRACE(from + " -> " + to);
    const int steps = tokens.size();
    Request planned = tiny.Greedy(golden.prompt(), from, steps);
    planned.num_top_logprobs = 0;
    Request switched = planned;
    planned.switches.push_back({after, tiny.Strategy(to), 0});
    const CollectingSink::Sequence by_plan = tiny.Run(planned)->Get(0);
    ExpectDemoted(golden, which, by_plan);

    switched.label = "mine";
    absl::StatusOr<int64_t> freed = absl::UnknownError("not called");
    auto sink = std::make_shared<CollectingSink>([&](int num_tokens) {
      if (num_tokens != after + 1) return;
      tiny.engine->SwitchStrategy("mine", tiny.Strategy(to), 0, false,
                                  [&](auto status) { freed = status; });
    });
    tiny.engine->Submit(switched, sink);
    ASSERT_TRUE(sink->Wait().ok());
    const CollectingSink::Sequence by_call = sink->Get(0);
    ExpectDemoted(golden, which, by_call);

    const int dropped =
        tiny.Strategy(from).num_leaders() - tiny.Strategy(to).num_leaders();
    const int positions = golden.prompt().size() + steps - 1;
    ASSERT_TRUE(freed.ok()) << freed.status();
    // Pages and promises: all that the dropped leaders would come to hold.
    EXPECT_EQ(*freed, dropped * ((positions + 3) / 4) * tiny.page_bytes);
    for (const Usage& usage : {by_plan.end->usage, by_call.end->usage}) {
      EXPECT_EQ(usage.strategy, tiny.Strategy(to).canonical());
      ASSERT_EQ(usage.switches.size(), 1u);
      EXPECT_EQ(usage.switches[0].after_generated, after);
      EXPECT_EQ(usage.switches[0].strategy, usage.strategy);
    }
    // Of a planned switch, the promises were never made.
    const int held = golden.prompt().size() + after;
    EXPECT_EQ(by_plan.end->usage.switches[0].freed_bytes,
              dropped * ((held + 3) / 4) * tiny.page_bytes);
    EXPECT_EQ(by_call.end->usage.switches[0].freed_bytes, *freed);
    ++which;
  }
  EXPECT_GE(which, 3);
}

std::vector<GoldenCase> OnOneDevice() {
  std::vector<GoldenCase> cases;
  for (const char* model : kGoldenModels) cases.push_back({model});
  return cases;
}

std::string NameOf(const testing::TestParamInfo<GoldenCase>& info) {
  std::string name = info.param.model;
  std::replace(name.begin(), name.end(), '-', '_');
  return name + "_" + std::to_string(info.param.num_ranks);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, testing::ValuesIn(OnOneDevice()),
                         NameOf);

// As many as the KV heads allow; qwen3-qknorm has one.
INSTANTIATE_TEST_SUITE_P(Split, GoldenTest,
                         testing::Values(GoldenCase{"llama-tied", 2},
                                         GoldenCase{"llama3-ropescaled", 2},
                                         GoldenCase{"mistral", 5},
                                         GoldenCase{"qwen2-bias", 2}),
                         NameOf);

}  // namespace
}  // namespace strata
