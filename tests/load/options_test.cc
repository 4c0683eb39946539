#include "tests/load/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"

ABSL_DECLARE_FLAG(std::string, mix);
ABSL_DECLARE_FLAG(std::string, prompts);
ABSL_DECLARE_FLAG(double, cancel_rate);
ABSL_DECLARE_FLAG(double, request_rate);
ABSL_DECLARE_FLAG(int, concurrency);
ABSL_DECLARE_FLAG(int, num_prompts);
ABSL_DECLARE_FLAG(int, shared_prefix_tokens);
ABSL_DECLARE_FLAG(bool, bypass_prefix_cache);
ABSL_DECLARE_FLAG(std::string, trace);
ABSL_DECLARE_FLAG(std::string, goodput);
ABSL_DECLARE_FLAG(std::vector<std::string>, allow_errors);
ABSL_DECLARE_FLAG(std::string, switch_to);
ABSL_DECLARE_FLAG(double, switch_rate);
ABSL_DECLARE_FLAG(bool, find_capacity);

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kDraws = 50'000;

struct Moments {
  double mean = 0;
  double deviation = 0;
  int least = 1 << 30;
  int most = 0;
};

Moments Draws(const std::string& text) {
  const auto lengths = Lengths::Parse(text);
  EXPECT_TRUE(lengths.ok()) << lengths.status();
  std::mt19937_64 random(7);
  Moments m;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const int length = lengths->Draw(&random);
    m.mean += static_cast<double>(length) / kDraws;
    squares += static_cast<double>(length) * length / kDraws;
    m.least = std::min(m.least, length);
    m.most = std::max(m.most, length);
  }
  m.deviation = std::sqrt(squares - m.mean * m.mean);
  return m;
}

TEST(LengthsTest, Fixed) {
  const Moments m = Draws("33");
  EXPECT_EQ(m.least, 33);
  EXPECT_EQ(m.most, 33);
}

TEST(LengthsTest, UniformReachesBothEnds) {
  const Moments m = Draws("uniform:10-30");
  EXPECT_EQ(m.least, 10);
  EXPECT_EQ(m.most, 30);
  EXPECT_NEAR(m.mean, 20, 0.2);
  EXPECT_NEAR(m.deviation, std::sqrt((21 * 21 - 1) / 12.0), 0.1);
}

TEST(LengthsTest, NormalIsRoundedAndAtLeastOne) {
  const Moments m = Draws("normal:100,20");
  EXPECT_NEAR(m.mean, 100, 0.5);
  EXPECT_NEAR(m.deviation, 20, 0.3);
  EXPECT_EQ(Draws("normal:2,10").least, 1);
}

TEST(LengthsTest, LognormalHasTheGivenMoments) {
  const Moments m = Draws("lognormal:200,100");
  EXPECT_NEAR(m.mean, 200, 2);
  EXPECT_NEAR(m.deviation, 100, 3);
  EXPECT_EQ(Draws("lognormal:5,0").most, 5);
}

TEST(LengthsTest, RefusesWhatIsNoLength) {
  for (const char* text :
       {"", "0", "-3", "1.5", "abc", "uniform:5", "uniform:9-5", "uniform:0-5",
        "normal:5", "normal:0,1", "normal:5,-1", "normal:nan,1", "zipf:3",
        "99999999999", "uniform:1-2-3"}) {
    EXPECT_FALSE(Lengths::Parse(text).ok()) << text;
  }
  EXPECT_THAT(Lengths::Parse("zipf:3").status().message(),
              HasSubstr("'zipf:3': a length is N, uniform:A-B"));
}

TEST(MixTest, WeightsStandAfterTheLastColon) {
  const auto mix = Mix::Parse("full:0.5,leaders=0,4:1.5,every=2");
  ASSERT_TRUE(mix.ok()) << mix.status();
  EXPECT_THAT(mix->Labels(), ElementsAre("full", "leaders=0,4", "every=2"));
  EXPECT_EQ(mix->items()[0].weight, 0.5);
  EXPECT_EQ(mix->items()[1].weight, 1.5);
  EXPECT_EQ(mix->items()[2].weight, 1);
  std::mt19937_64 random(8);
  int counts[3] = {};
  for (int i = 0; i < kDraws; ++i) ++counts[mix->Draw(&random)];
  EXPECT_NEAR(counts[0], kDraws / 6.0, kDraws * 0.01);
  EXPECT_NEAR(counts[1], kDraws / 2.0, kDraws * 0.01);
  EXPECT_NEAR(counts[2], kDraws / 3.0, kDraws * 0.01);
}

TEST(MixTest, SemicolonsAndTheDefault) {
  EXPECT_THAT(Mix::Parse("full:2;leaders=0,4:1")->Labels(),
              ElementsAre("full", "leaders=0,4"));
  EXPECT_THAT(Mix::Parse("")->Labels(), ElementsAre("default"));
  EXPECT_EQ(Mix::Parse("")->items()[0].spec, "");
}

TEST(MixTest, AFloorStandsAfterTheArrow) {
  const auto mix = Mix::Parse("full>every=4:3,full,every=2>leaders=0,4:0.5");
  ASSERT_TRUE(mix.ok()) << mix.status();
  EXPECT_THAT(mix->Labels(),
              ElementsAre("full>every=4", "full", "every=2>leaders=0,4"));
  EXPECT_EQ(mix->items()[0].spec, "full");
  EXPECT_EQ(mix->items()[0].floor, "every=4");
  EXPECT_EQ(mix->items()[0].weight, 3);
  EXPECT_EQ(mix->items()[1].floor, "");
  EXPECT_EQ(mix->items()[2].floor, "leaders=0,4");
  EXPECT_EQ(mix->items()[2].weight, 0.5);
  const auto of_default = Mix::Parse(">every=4");
  ASSERT_TRUE(of_default.ok()) << of_default.status();
  EXPECT_THAT(of_default->Labels(), ElementsAre("default>every=4"));
  EXPECT_EQ(of_default->items()[0].spec, "");
}

TEST(MixTest, RefusesBadWeightsAndItems) {
  for (const char* text :
       {"full:0", "full:-1", "full:x", "full:", "full:inf", "full:nan",
        "full:1e308,half:1e308", "full,full", "full,,half", ":1,full", "full>",
        "full>:1", "full>half>every=4", ">half,full",
        "full>half,full>half:2"}) {
    EXPECT_FALSE(Mix::Parse(text).ok()) << text;
  }
}

TEST(GoodputTest, ParsesAnyOfTheThree) {
  const auto goodput = Goodput::Parse("ttft:200,e2el:5000.5");
  ASSERT_TRUE(goodput.ok());
  EXPECT_EQ(goodput->ttft_ms, 200);
  EXPECT_FALSE(goodput->tpot_ms.has_value());
  EXPECT_EQ(goodput->e2el_ms, 5000.5);
  EXPECT_TRUE(goodput->any());
  EXPECT_FALSE(Goodput::Parse("")->any());
  for (const char* text : {"ttft", "ttft:", "ttft:0", "itl:5", "ttft:nan",
                           "ttft:1e400", "ttft:inf", "ttft:1,ttft:2"}) {
    EXPECT_FALSE(Goodput::Parse(text).ok()) << text;
  }
}

class FlagsTest : public ::testing::Test {
 private:
  absl::FlagSaver saver_;
};

TEST_F(FlagsTest, DefaultsAreAClosedLoopOfSixteen) {
  const auto options = LoadOptionsFromFlags();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->concurrency, 16);
  EXPECT_TRUE(std::isinf(options->request_rate));
  absl::SetFlag(&FLAGS_request_rate, 3);
  EXPECT_EQ(LoadOptionsFromFlags()->concurrency, 0);
  absl::SetFlag(&FLAGS_concurrency, 5);
  EXPECT_EQ(LoadOptionsFromFlags()->concurrency, 5);
}

TEST_F(FlagsTest, PrefixesAreNeitherSharedNorBypassedUnlessAsked) {
  EXPECT_EQ(LoadOptionsFromFlags()->shared_prefix_tokens, 0);
  EXPECT_FALSE(LoadOptionsFromFlags()->bypass_prefix_cache);
  absl::SetFlag(&FLAGS_shared_prefix_tokens, 257);
  absl::SetFlag(&FLAGS_bypass_prefix_cache, true);
  EXPECT_EQ(LoadOptionsFromFlags()->shared_prefix_tokens, 257);
  EXPECT_TRUE(LoadOptionsFromFlags()->bypass_prefix_cache);
  absl::SetFlag(&FLAGS_shared_prefix_tokens, -1);
  EXPECT_THAT(LoadOptionsFromFlags().status().message(),
              HasSubstr("--shared_prefix_tokens=-1: must be from 0 to"));
}

TEST_F(FlagsTest, AllowedErrorsAreCodesOfGrpc) {
  absl::SetFlag(&FLAGS_allow_errors, {"RESOURCE_EXHAUSTED", "CANCELLED"});
  EXPECT_TRUE(LoadOptionsFromFlags().ok());
  for (const char* code : {"RESOURCE_EXHAUSTD", "cancelled", "OK", "", "8"}) {
    absl::SetFlag(&FLAGS_allow_errors, {code});
    EXPECT_EQ(LoadOptionsFromFlags().status().message(),
              "--allow_errors: '" + std::string(code) +
                  "' is no code of gRPC, such as RESOURCE_EXHAUSTED");
  }
}

TEST_F(FlagsTest, ErrorsNameTheFlag) {
  absl::SetFlag(&FLAGS_mix, "full:x");
  EXPECT_THAT(LoadOptionsFromFlags().status().message(),
              HasSubstr("--mix: 'full:x'"));
  absl::SetFlag(&FLAGS_mix, "");
  absl::SetFlag(&FLAGS_cancel_rate, 1.5);
  EXPECT_EQ(LoadOptionsFromFlags().status().message(),
            "--cancel_rate=1.5: must be from 0 to 1");
  absl::SetFlag(&FLAGS_cancel_rate, std::nan(""));
  EXPECT_FALSE(LoadOptionsFromFlags().ok());
  absl::SetFlag(&FLAGS_cancel_rate, 0);
  absl::SetFlag(&FLAGS_request_rate, 0);
  EXPECT_EQ(LoadOptionsFromFlags().status().message(),
            "--request_rate=0: must be a number from 0.001, or inf");
  absl::SetFlag(&FLAGS_request_rate, 1);
  absl::SetFlag(&FLAGS_num_prompts, -1);
  EXPECT_FALSE(LoadOptionsFromFlags().ok());
  absl::SetFlag(&FLAGS_num_prompts, 1);
  absl::SetFlag(&FLAGS_prompts, "images");
  EXPECT_EQ(LoadOptionsFromFlags().status().message(),
            "--prompts=images: must be tokens or text");
}

TEST_F(FlagsTest, ATraceKeepsItsTimesAndLength) {
  absl::SetFlag(&FLAGS_trace, "a.jsonl");
  const auto options = LoadOptionsFromFlags();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->num_prompts, 0);
  EXPECT_EQ(options->concurrency, 0);
  EXPECT_TRUE(options->is_open_loop());
  absl::SetFlag(&FLAGS_trace, "a.json");
  EXPECT_EQ(LoadOptionsFromFlags()->trace.format,
            TraceOptions::Format::kShareGpt);
  EXPECT_EQ(LoadOptionsFromFlags()->concurrency, 16);
  absl::SetFlag(&FLAGS_trace, "a.csv");
  EXPECT_THAT(LoadOptionsFromFlags().status().message(),
              HasSubstr("must be mooncake or sharegpt"));
}

TEST_F(FlagsTest, WhatDoesNotGoTogether) {
  absl::SetFlag(&FLAGS_switch_rate, 0.5);
  EXPECT_THAT(LoadOptionsFromFlags().status().message(),
              HasSubstr("needs --switch_to"));
  absl::SetFlag(&FLAGS_switch_to, "every=4;leaders=0,2");
  EXPECT_THAT(LoadOptionsFromFlags()->disturbances.switch_to,
              ElementsAre("every=4", "leaders=0,2"));
  absl::SetFlag(&FLAGS_find_capacity, true);
  EXPECT_THAT(LoadOptionsFromFlags().status().message(),
              HasSubstr("needs --goodput"));
  absl::SetFlag(&FLAGS_goodput, "ttft:100");
  EXPECT_TRUE(LoadOptionsFromFlags().ok());
  absl::SetFlag(&FLAGS_request_rate, 2);
  EXPECT_FALSE(LoadOptionsFromFlags().ok());
}

TEST(DisturbancesTest, DrawTheirShares) {
  const Disturbances d = {.cancel_rate = 0.4,
                          .slow_reader_rate = 0.3,
                          .slow_reader_delay_s = 0.5,
                          .deadline_rate = 0.2,
                          .deadline_within_s = 3,
                          .switch_rate = 0.1,
                          .switch_to = {"a", "b"}};
  std::mt19937_64 random(9);
  double cancelled = 0, slow = 0, short_of_time = 0, switched = 0, to_a = 0;
  for (int i = 0; i < kDraws; ++i) {
    PlannedCall call;
    call.max_tokens = 1 + i % 3;
    d.Draw(&random, &call);
    cancelled += call.cancel_after_s || call.cancel_after_responses;
    slow += call.read_delay_s == 0.5;
    short_of_time += call.deadline_s.has_value();
    EXPECT_LE(call.deadline_s.value_or(0), 3);
    switched += !call.switch_to.empty();
    to_a += call.switch_to == "a";
    if (!call.switch_to.empty()) {
      EXPECT_GE(call.switch_after_responses, 1);
      EXPECT_LE(call.switch_after_responses, std::max(1, i % 3));
    }
  }
  EXPECT_NEAR(cancelled / kDraws, 0.4, 0.01);
  EXPECT_NEAR(slow / kDraws, 0.3, 0.01);
  EXPECT_NEAR(short_of_time / kDraws, 0.2, 0.01);
  EXPECT_NEAR(switched / kDraws, 0.1, 0.01);
  EXPECT_NEAR(to_a / kDraws, 0.05, 0.01);
}

}  // namespace
}  // namespace strata
