#include "tests/load/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/load/trace_maker.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(MooncakeTest, ParsesLinesInOrderOfTime) {
  const auto calls = ParseMooncake(
      "{\"timestamp\": 3000, \"input_length\": 1000, \"output_length\": 5, "
      "\"hash_ids\": [7, 8]}\r\n"
      "\n"
      "{\"timestamp\": 1500.5, \"input_length\": 1, \"output_length\": 0, "
      "\"hash_ids\": [], \"other\": {}}");
  ASSERT_TRUE(calls.ok()) << calls.status();
  ASSERT_EQ(calls->size(), 2u);
  EXPECT_EQ((*calls)[0].at_s, 0);
  EXPECT_EQ((*calls)[0].input_length, 1);
  EXPECT_EQ((*calls)[0].output_length, 1);
  EXPECT_DOUBLE_EQ((*calls)[1].at_s, 1.4995);
  EXPECT_EQ((*calls)[1].input_length, 1000);
  EXPECT_EQ((*calls)[1].output_length, 5);
  EXPECT_THAT((*calls)[1].hash_ids, ElementsAre(7, 8));
}

TEST(MooncakeTest, RefusesHostileLinesAndNamesThem) {
  const std::string good =
      "{\"timestamp\":0,\"input_length\":1,\"output_length\":1,\"hash_ids\":[]}"
      "\n";
  for (
      const char* line : {
          "x",
          "[]",
          "{",
          "null",
          "{}",
          "\xff",
          R"({"timestamp":-1,"input_length":1,"output_length":1,"hash_ids":[]})",
          R"({"timestamp":1e13,"input_length":1,"output_length":1,"hash_ids":[]})",
          R"({"timestamp":"0","input_length":1,"output_length":1,"hash_ids":[]})",
          R"({"timestamp":0,"input_length":0,"output_length":1,"hash_ids":[]})",
          R"({"timestamp":0,"input_length":-1,"output_length":1,"hash_ids":[]})",
          R"({"timestamp":0,"input_length":16777217,"output_length":1,"hash_ids":[]})",
          R"({"timestamp":0,"input_length":18446744073709551615,"output_length":1,"hash_ids":[]})",
          R"({"timestamp":0,"input_length":1e999,"output_length":1,"hash_ids":[]})",
          R"({"timestamp":0,"input_length":1.5,"output_length":1,"hash_ids":[]})",
          R"({"timestamp":0,"input_length":1,"output_length":-1,"hash_ids":[]})",
          R"({"timestamp":0,"input_length":1,"output_length":1})",
          R"({"timestamp":0,"input_length":1,"output_length":1,"hash_ids":7})",
          R"({"timestamp":0,"input_length":1,"output_length":1,"hash_ids":["7"]})",
      }) {
    const auto calls = ParseMooncake(good + line + "\n" + good);
    ASSERT_FALSE(calls.ok()) << line;
    EXPECT_THAT(std::string(calls.status().message()), HasSubstr("line 2: "));
  }
  EXPECT_FALSE(ParseMooncake("").ok());
  EXPECT_FALSE(ParseMooncake("\n \n").ok());
  EXPECT_FALSE(ParseMooncake(std::string(100000, '[')).ok());
}

TEST(MooncakePromptTest, EqualIdsAreEqualBlocks) {
  const MooncakeCall a = {.hash_ids = {1, 2, 3}};
  const MooncakeCall b = {.hash_ids = {1, 2, 4}};
  const auto of_a = MooncakePrompt(a, 90, 33, 97, 5, 10);
  const auto of_b = MooncakePrompt(b, 110, 33, 97, 5, 11);
  ASSERT_EQ(of_a.size(), 90u);
  ASSERT_EQ(of_b.size(), 110u);
  EXPECT_TRUE(std::equal(of_a.begin(), of_a.begin() + 66, of_b.begin()));
  EXPECT_FALSE(std::equal(of_a.begin() + 66, of_a.end(), of_b.begin() + 66));
  EXPECT_LT(*std::max_element(of_b.begin(), of_b.end()), 97u);
  EXPECT_NE(of_a, MooncakePrompt(a, 90, 33, 97, 6, 10));
  // Beyond the ids, tokens are the call's own.
  const auto again = MooncakePrompt(b, 110, 33, 97, 5, 12);
  EXPECT_TRUE(std::equal(of_b.begin(), of_b.begin() + 99, again.begin()));
  EXPECT_NE(of_b, again);
  // Of ids beyond the length nothing is taken.
  EXPECT_EQ(MooncakePrompt(a, 1, 33, 97, 5, 10).size(), 1u);
}

TEST(ShareGptTest, TakesAnswersToHumans) {
  const std::string text = R"([
    {"id": "1", "conversations": [
      {"from": "system", "value": "s"}, {"from": "human", "value": "q"},
      {"from": "gpt", "value": "a"}, {"from": "human", "value": "r"},
      {"from": "gpt", "value": "b"}]},
    {"conversations": [{"from": "gpt", "value": "alone"}]},
    {"conversations": []}])";
  const auto first = ParseShareGpt(text, 1);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->size(), 1u);
  EXPECT_EQ((*first)[0].prompt, "s\n\nq");
  EXPECT_EQ((*first)[0].answer, "a");
  const auto both = ParseShareGpt(text, 2);
  ASSERT_EQ(both->size(), 2u);
  EXPECT_EQ((*both)[1].prompt, "s\n\nq\n\na\n\nr");
  EXPECT_EQ((*both)[1].answer, "b");
}

TEST(ShareGptTest, RefusesWhatIsNoList) {
  for (const char* text :
       {"", "{}", "[", "[1]", "[{}]", R"([{"conversations": 1}])",
        R"([{"conversations": [1]}])",
        R"([{"conversations": [{"from": "gpt"}]}])",
        R"([{"conversations": [{"from": 1, "value": "x"}]}])",
        R"([{"conversations": []}])", "[]"}) {
    EXPECT_FALSE(ParseShareGpt(text, 1).ok()) << text;
  }
  EXPECT_FALSE(ParseShareGpt(std::string(100000, '['), 1).ok());
}

TEST(TraceMakerTest, MooncakeHasItsShape) {
  const std::string text = MakeMooncake(12000, 3, 1);
  EXPECT_EQ(text, MakeMooncake(12000, 3, 1));
  EXPECT_NE(text, MakeMooncake(12000, 3, 2));
  const auto calls = ParseMooncake(text);
  ASSERT_TRUE(calls.ok()) << calls.status();
  ASSERT_EQ(calls->size(), 12000u);
  double input = 0, output = 0, seen = 0, blocks = 0;
  std::set<uint64_t> known;
  for (const MooncakeCall& call : *calls) {
    input += call.input_length / 12000.0;
    output += call.output_length / 12000.0;
    EXPECT_EQ(static_cast<int>(call.hash_ids.size()),
              (call.input_length + 511) / 512);
    for (const uint64_t id : call.hash_ids) {
      ++blocks;
      seen += !known.insert(id).second;
    }
  }
  EXPECT_NEAR(input, 12035, 0.1 * 12035);
  EXPECT_NEAR(output, 343, 0.05 * 343);
  EXPECT_NEAR(calls->back().at_s, 4000, 200);
  EXPECT_GT(seen / blocks, 0.4);
  EXPECT_LT(seen / blocks, 0.8);
}

TEST(TraceMakerTest, ShareGptHasItsShape) {
  const auto exchanges = ParseShareGpt(MakeShareGpt(2000, 3), 1);
  ASSERT_TRUE(exchanges.ok()) << exchanges.status();
  ASSERT_EQ(exchanges->size(), 2000u);
  double said = 0, answered = 0;
  for (const Exchange& exchange : *exchanges) {
    const auto words = [](const std::string& text) {
      return 1.0 +
             static_cast<double>(std::count(text.begin(), text.end(), ' '));
    };
    said += words(exchange.prompt) / 2000;
    answered += words(exchange.answer) / 2000;
  }
  EXPECT_NEAR(said, 161, 0.1 * 161);
  EXPECT_NEAR(answered, 338, 0.1 * 338);
}

}  // namespace
}  // namespace strata
