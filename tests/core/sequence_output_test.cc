#include "core/sequence_output.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text/tokenizer.h"
#include "core/text/tokenizer_spec.h"

namespace strata {
namespace {

using Ids = std::vector<int32_t>;

// Tokens by id.  Bytes above 0x7F stand in the byte-to-unicode spelling:
// U+00C3 is byte C3, U+00A4 A4, U+00E2 E2, U+0124 82, U+00AC AC.
constexpr const char* kTokens[] = {"a",      "b",      "c",
                                   "ab",     "STOP",   "\u00C3",
                                   "\u00A4", "\u00E2", "\u0124\u00AC",
                                   "aSTOPb", "<eos>",  "<eot>"};
enum Token : int32_t {
  kA,
  kB,
  kC,
  kAb,
  kStopWord,
  kLead,
  kTrail,
  kEuroLead,
  kEuroTrail,
  kAround,
  kEos,
  kEot
};

class SequenceOutputTest : public ::testing::Test {
 protected:
  SequenceOutputTest() : request_(SharingStrategy::Full(1)) {
    TokenizerSpec spec;
    for (const char* token : kTokens) spec.tokens.push_back(token);
    for (const int32_t id : {kEos, kEot}) {
      spec.added.push_back({.id = id, .content = kTokens[id], .special = true});
    }
    auto tokenizer = Tokenizer::Create(std::move(spec));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
    request_.prompt = {kA};
    request_.stopping.max_tokens = 100;
  }

  SequenceOutput NewOutput() {
    return SequenceOutput(tokenizer_.get(), request_, eos_);
  }

  struct Whole {
    std::string text;
    size_t num_tokens = 0;
    std::optional<FinishReason> finish;
    std::string matched_stop;
  };
  // Appends `tokens` until one ends the sequence.
  Whole Run(const Ids& tokens) {
    SequenceOutput output = NewOutput();
    Whole whole;
    for (const int32_t token : tokens) {
      SequenceOutput::Result result = output.Append(token);
      whole.text += result.text;
      ++whole.num_tokens;
      if (!result.finish) continue;
      whole.finish = result.finish;
      whole.matched_stop = result.matched_stop;
      return whole;
    }
    whole.text += output.Flush();
    return whole;
  }

  std::unique_ptr<const Tokenizer> tokenizer_;
  Request request_;
  std::vector<int32_t> eos_ = {kEos, kEot};
};

TEST_F(SequenceOutputTest, TextComesAsItBecomesCertain) {
  SequenceOutput output = NewOutput();
  EXPECT_EQ(output.Append(kAb).text, "ab");
  EXPECT_EQ(output.Append(kEuroLead).text, "");
  EXPECT_EQ(output.Append(kEuroTrail).text, "\u20AC");
  EXPECT_EQ(output.Append(kLead).text, "");
  EXPECT_EQ(output.Append(kTrail).text, "\u00E4");
  EXPECT_EQ(output.Flush(), "");
}

TEST_F(SequenceOutputTest, AnIncompleteCharacterAtTheEndIsReplaced) {
  EXPECT_EQ(Run({kA, kLead}).text, "a\uFFFD");
  EXPECT_EQ(Run({kA, kLead, kEos}).text, "a\uFFFD");
  request_.stopping.max_tokens = 2;
  EXPECT_EQ(Run({kA, kLead}).text, "a\uFFFD");
}

TEST_F(SequenceOutputTest, AnyEndOfTextTokenEnds) {
  for (const int32_t end : eos_) {
    const Whole whole = Run({kA, end});
    EXPECT_EQ(whole.finish, FinishReason::kStop);
    EXPECT_EQ(whole.text, "a");
    EXPECT_EQ(whole.matched_stop, "");
  }
  request_.stopping.ignore_eos = true;
  const Whole whole = Run({kA, kEos, kEot, kB});
  EXPECT_EQ(whole.finish, std::nullopt);
  EXPECT_EQ(whole.text, "ab");
}

TEST_F(SequenceOutputTest, StopTokensAddTextOnlyIfIncluded) {
  request_.stopping.stop_tokens = {kStopWord, kEos};
  EXPECT_EQ(Run({kA, kStopWord}).text, "a");
  EXPECT_EQ(Run({kA, kStopWord}).finish, FinishReason::kStop);
  request_.stopping.include_stop = true;
  EXPECT_EQ(Run({kA, kStopWord}).text, "aSTOP");
  EXPECT_EQ(Run({kA, kEos}).text, "a");
  request_.stopping.ignore_eos = true;  // still a stop token
  EXPECT_EQ(Run({kA, kEos}).finish, FinishReason::kStop);
}

TEST_F(SequenceOutputTest, StopStringsCutTheText) {
  request_.stopping.stop = {"bca"};
  const Whole whole = Run({kA, kB, kC, kAb, kA});
  EXPECT_EQ(whole.text, "a");
  EXPECT_EQ(whole.num_tokens, 4u);
  EXPECT_EQ(whole.finish, FinishReason::kStop);
  EXPECT_EQ(whole.matched_stop, "bca");
  request_.stopping.include_stop = true;
  EXPECT_EQ(Run({kA, kB, kC, kAb, kA}).text, "abca");
}

TEST_F(SequenceOutputTest, AStopStringWithinAToken) {
  request_.stopping.stop = {"STOP"};
  EXPECT_EQ(Run({kAround}).text, "a");
  request_.stopping.stop = {"TOP", "STOPb", "STOP"};
  EXPECT_EQ(Run({kAround}).matched_stop, "STOPb");
}

TEST_F(SequenceOutputTest, HeldTextIsGivenAtTheEnd) {
  request_.stopping.stop = {"aaaa"};
  EXPECT_EQ(Run({kB, kA, kA}).text, "baa");
  EXPECT_EQ(Run({kB, kA, kA, kEos}).text, "baa");
  request_.stopping.stop_tokens = {kC};
  request_.stopping.include_stop = true;
  EXPECT_EQ(Run({kB, kA, kA, kC}).text, "baac");
  request_.stopping.max_tokens = 3;
  const Whole whole = Run({kB, kA, kA});
  EXPECT_EQ(whole.text, "baa");
  EXPECT_EQ(whole.finish, FinishReason::kLength);
}

TEST_F(SequenceOutputTest, PrecedenceWithinOneToken) {
  request_.stopping.max_tokens = 2;
  EXPECT_EQ(Run({kA, kB}).finish, FinishReason::kLength);
  request_.stopping.stop = {"ab"};
  EXPECT_EQ(Run({kA, kB}).finish, FinishReason::kStop);
  EXPECT_EQ(Run({kA, kB}).matched_stop, "ab");
  request_.stopping.stop_tokens = {kB};
  EXPECT_EQ(Run({kA, kB}).finish, FinishReason::kStop);
  EXPECT_EQ(Run({kA, kB}).matched_stop, "");
  EXPECT_EQ(Run({kA, kB}).text, "a");
}

TEST_F(SequenceOutputTest, MinTokensBanEndTokens) {
  request_.stopping.min_tokens = 2;
  request_.stopping.stop_tokens = {kEos, kStopWord};
  const SequenceOutput output = NewOutput();
  const Ids want = {kStopWord, kEos, kEot};
  for (int i = 0; i < 2; ++i) {
    const auto banned = output.BannedAfter(i);
    EXPECT_EQ(Ids(banned.begin(), banned.end()), want);
  }
  EXPECT_TRUE(output.BannedAfter(2).empty());
  request_.stopping.ignore_eos = true;
  request_.stopping.stop_tokens.clear();
  EXPECT_TRUE(NewOutput().BannedAfter(0).empty());
}

TEST_F(SequenceOutputTest, StopStringsWithinMinTokensPass) {
  request_.stopping.stop = {"abab"};
  request_.stopping.min_tokens = 4;
  const Whole whole = Run({kA, kB, kA, kB, kC, kAb, kAb, kA});
  EXPECT_EQ(whole.text, "ababc");
  EXPECT_EQ(whole.num_tokens, 7u);
  // One that begins within them counts.
  EXPECT_EQ(Run({kC, kC, kA, kB, kAb}).text, "cc");
}

TEST_F(SequenceOutputTest, TokensOnlyGivesNoTextButStops) {
  request_.tokens_only = true;
  EXPECT_EQ(Run({kA, kB}).text, "");
  request_.stopping.stop = {"bc"};
  const Whole whole = Run({kA, kB, kC, kA});
  EXPECT_EQ(whole.text, "");
  EXPECT_EQ(whole.num_tokens, 3u);
  EXPECT_EQ(whole.matched_stop, "bc");
}

TEST_F(SequenceOutputTest, WithoutATokenizerTokensEndIt) {
  tokenizer_.reset();
  request_.stopping.max_tokens = 3;
  EXPECT_EQ(Run({1000, kEos}).finish, FinishReason::kStop);
  const Whole whole = Run({1000, 1001, 1002});
  EXPECT_EQ(whole.finish, FinishReason::kLength);
  EXPECT_EQ(whole.text, "");
}

}  // namespace
}  // namespace strata
