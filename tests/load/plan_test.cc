#include "tests/load/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/client/fake_inference.h"
#include "tests/load/test_options.h"

namespace strata {
namespace {

TEST(PlanTest, IsAFunctionOfTheSeedAndFitsTheContext) {
  LoadOptions options = Options(500, 1);
  options.prompt_lengths = *Lengths::Parse("uniform:1-100");
  options.output_lengths = *Lengths::Parse("uniform:1-100");
  options.disturbances.cancel_rate = 0.3;
  const auto plan = MakePlan(options, Model()).calls;
  const auto again = MakePlan(options, Model()).calls;
  int cancelled = 0;
  uint32_t most = 0;
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(plan[i].tokens, again[i].tokens);
    EXPECT_EQ(plan[i].seed, again[i].seed);
    EXPECT_GE(plan[i].tokens.size(), 1u);
    EXPECT_GE(plan[i].max_tokens, 1);
    EXPECT_LE(plan[i].tokens.size() + plan[i].max_tokens,
              FakeInference::kContext);
    for (uint32_t id : plan[i].tokens) most = std::max(most, id);
    cancelled += plan[i].cancel_after_s || plan[i].cancel_after_responses;
  }
  EXPECT_EQ(most, FakeInference::kVocabulary - 1);
  EXPECT_NEAR(cancelled, 150, 40);
  options.seed = 12;
  EXPECT_NE(MakePlan(options, Model()).calls[0].seed, plan[0].seed);
}

TEST(PlanTest, TextHasAsManyWordsAsTokensWereDrawn) {
  LoadOptions options = Options(1, 1);
  options.text_prompts = true;
  options.prompt_lengths = *Lengths::Parse("33");
  const PlannedCall call = MakePlan(options, Model()).calls[0];
  EXPECT_EQ(std::count(call.text.begin(), call.text.end(), ' '), 32);
  EXPECT_TRUE(call.tokens.empty());
}

TEST(PlanTest, ASharedPrefixStandsBeforeTheSamePrompts) {
  LoadOptions options = Options(50, 1);
  const auto alone = MakePlan(options, Model()).calls;
  options.shared_prefix_tokens = 7;
  const auto plan = MakePlan(options, Model()).calls;
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(plan[i].tokens.size(), alone[i].tokens.size() + 7);
    EXPECT_TRUE(std::equal(alone[i].tokens.begin(), alone[i].tokens.end(),
                           plan[i].tokens.begin() + 7));
    EXPECT_TRUE(std::equal(plan[i].tokens.begin(), plan[i].tokens.begin() + 7,
                           plan[0].tokens.begin()));
    EXPECT_EQ(plan[i].max_tokens, alone[i].max_tokens);
    EXPECT_EQ(plan[i].seed, alone[i].seed);
  }
  options.text_prompts = true;
  options.prompt_lengths = *Lengths::Parse("3");
  const auto text = MakePlan(options, Model()).calls;
  size_t end = 0;
  for (int word = 0; word < 7; ++word) end = text[0].text.find(' ', end) + 1;
  EXPECT_EQ(text[0].text.substr(0, end), text[1].text.substr(0, end));
  EXPECT_NE(text[0].text, text[1].text);
  EXPECT_EQ(std::count(text[0].text.begin(), text[0].text.end(), ' '), 9);
}

TEST(PlanTest, ALongSharedPrefixLeavesAPromptOneTokenAndOneToGenerate) {
  LoadOptions options = Options(2, 1);
  options.shared_prefix_tokens = 1'000'000;
  const auto plan = MakePlan(options, Model()).calls;
  for (const PlannedCall& call : plan) {
    EXPECT_EQ(call.tokens.size(), FakeInference::kContext - 1);
    EXPECT_EQ(call.max_tokens, 1);
  }
}

TEST(PlanTest, TracedCallsAreCutToTheContextAndCounted) {
  const TracedCall fits = {.at_s = 1.5,
                           .tokens = std::vector<uint32_t>(31, 5),
                           .prompt_tokens = 31,
                           .output_tokens = 33};
  // The context is 64.
  const TracedCall long_prompt = {.tokens = std::vector<uint32_t>(64, 6),
                                  .prompt_tokens = 257,
                                  .output_tokens = 9};
  const TracedCall long_both = {.tokens = std::vector<uint32_t>(64, 7),
                                .prompt_tokens = 257,
                                .output_tokens = 257};
  LoadOptions options = Options(0, 0);
  options.trace.path = "x.jsonl";
  const Plan plan = MakePlan(options, Model(), {fits, long_prompt, long_both});
  ASSERT_EQ(plan.calls.size(), 3u);
  EXPECT_EQ(plan.num_cut_prompts, 2);
  EXPECT_EQ(plan.num_cut_outputs, 1);
  EXPECT_EQ(plan.calls[0].tokens, fits.tokens);
  EXPECT_EQ(plan.calls[0].max_tokens, 33);
  EXPECT_EQ(plan.calls[0].arrival_s, 1.5);
  EXPECT_EQ(plan.calls[1].tokens.size(), 55u);
  EXPECT_EQ(plan.calls[1].max_tokens, 9);
  EXPECT_EQ(plan.calls[2].tokens.size(), 32u);
  EXPECT_EQ(plan.calls[2].max_tokens, 32);
  options.request_rate = 4;
  options.burstiness = std::numeric_limits<double>::infinity();
  EXPECT_EQ(MakePlan(options, Model(), {fits, fits}).calls[1].arrival_s, 0.25);
}

}  // namespace
}  // namespace strata
