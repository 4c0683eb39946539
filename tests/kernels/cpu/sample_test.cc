#include "kernels/cpu/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernels/cpu/thread_team.h"

namespace strata::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class SampleTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > DetectIsa()) GTEST_SKIP() << "not on this machine";
  }

  // The tokens of rows of logits, all of one vocabulary.
  std::vector<SampledToken> SampleRows(std::vector<float> logits,
                                       const std::vector<SampleRow>& rows,
                                       int num_workers = 1) const {
    std::vector<SampledToken> out(rows.size());
    const SampleArgs args = {
        .logits = logits.data(),
        .vocab = static_cast<int>(logits.size() / rows.size()),
        .rows = rows,
        .out = out.data()};
    SampleScratch scratch(num_workers, GetParam());
    ThreadTeam team(num_workers);
    team.Run([&](const Worker& worker) { Sample(args, scratch, worker); });
    return out;
  }

  SampledToken SampleOne(const std::vector<float>& logits,
                         const SampleRow& row) const {
    return SampleRows(logits, {row})[0];
  }

  // How often each token comes in `draws` draws at positions 0, 1, ...
  std::map<int, int> Counts(const std::vector<float>& logits, SampleRow row,
                            int draws) const {
    std::vector<float> all;
    std::vector<SampleRow> rows;
    for (int i = 0; i < draws; ++i) {
      all.insert(all.end(), logits.begin(), logits.end());
      row.position = i;
      rows.push_back(row);
    }
    std::map<int, int> counts;
    for (const SampledToken& out : SampleRows(all, rows)) ++counts[out.token];
    return counts;
  }

  // Draws under `row` and compares their frequencies with probabilities in
  // proportion to `want`, where 0 means never, by a chi-square test at about
  // one in a million.
  void ExpectDistribution(const std::vector<float>& logits,
                          const SampleRow& row,
                          const std::vector<double>& want) const {
    constexpr int kDraws = 8000;
    const std::map<int, int> counts = Counts(logits, row, kDraws);
    double total = 0.0, chi_square = 0.0;
    int kinds = 0;
    for (const double w : want) total += w;
    for (size_t t = 0; t < want.size(); ++t) {
      const auto found = counts.find(t);
      const int count = found == counts.end() ? 0 : found->second;
      if (want[t] == 0.0) {
        EXPECT_EQ(count, 0) << "token " << t;
        continue;
      }
      const double expected = kDraws * want[t] / total;
      chi_square += (count - expected) * (count - expected) / expected;
      ++kinds;
    }
    const double freedom = kinds - 1;
    EXPECT_TRUE(chi_square <= freedom + 5.0 * std::sqrt(2.0 * freedom) + 20.0)
        << chi_square << " at " << freedom << " degrees of freedom";
  }
};

std::vector<float> Logs(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(std::log(p));
  return logits;
}

std::vector<float> RandomLogits(int vocab, float sigma, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, sigma);
  std::vector<float> logits(vocab);
  for (float& x : logits) x = normal(random);
  return logits;
}

TEST_P(SampleTest, GreedyTakesTheLowestOfTheLargest) {
  for (const int vocab : {1, 2, 15, 16, 17, 31, 33, 257, 1025}) {
    std::vector<float> logits = RandomLogits(vocab, 1.0f, vocab);
    logits[vocab / 2] = logits[vocab - 1] = 9.0f;
    EXPECT_EQ(SampleOne(logits, {.temperature = 0.0f}).token, vocab / 2)
        << vocab;
  }
  EXPECT_EQ(
      SampleOne({-kInfinity, -3.0f, -kInfinity}, {.temperature = 0.0f}).token,
      1);
}

TEST_P(SampleTest, TemperatureShapesTheDistribution) {
  const std::vector<double> p = {0.05, 0.1, 0.4, 0.15, 0.3};
  ExpectDistribution(Logs(p), {.seed = 1}, p);
  std::vector<double> sharper, flatter;
  for (const double x : p) {
    sharper.push_back(x * x);
    flatter.push_back(std::sqrt(x));
  }
  ExpectDistribution(Logs(p), {.temperature = 0.5f, .seed = 2}, sharper);
  ExpectDistribution(Logs(p), {.temperature = 2.0f, .seed = 3}, flatter);
  EXPECT_EQ(Counts(Logs(p), {.temperature = 1e-40f}, 50),
            (std::map<int, int>{{2, 50}}));
}

TEST_P(SampleTest, WholeVocabulary) {
  const std::vector<float> logits = RandomLogits(2500, 1.0f, 4);
  std::vector<double> want;
  for (const float x : logits) want.push_back(std::exp(double{x}));
  ExpectDistribution(logits, {.seed = 5}, want);
}

TEST_P(SampleTest, TopKKeepsTheBest) {
  const std::vector<double> p = {0.1, 0.3, 0.1, 0.2, 0.1, 0.2};
  ExpectDistribution(Logs(p), {.top_k = 1}, {0, 1, 0, 0, 0, 0});
  ExpectDistribution(Logs(p), {.top_k = 2}, {0, 0.3, 0, 0.2, 0, 0});
  ExpectDistribution(Logs(p), {.top_k = 3}, {0, 0.3, 0, 0.2, 0, 0.2});
  ExpectDistribution(Logs(p), {.top_k = 5}, {0.1, 0.3, 0.1, 0.2, 0, 0.2});
  ExpectDistribution(Logs(p), {.top_k = 6}, p);
  ExpectDistribution(Logs(p), {.top_k = 7}, p);
}

TEST_P(SampleTest, TopPKeepsTheSmallestSet) {
  const std::vector<double> p = {0.125, 0.25, 0.125, 0.25, 0.25};
  ExpectDistribution(Logs(p), {.top_p = 0.001f}, {0, 1, 0, 0, 0});
  ExpectDistribution(Logs(p), {.top_p = 0.26f}, {0, 1, 0, 1, 0});
  ExpectDistribution(Logs(p), {.top_p = 0.51f}, {0, 1, 0, 1, 1});
  ExpectDistribution(Logs(p), {.top_p = 0.76f}, {1, 2, 0, 2, 2});
  ExpectDistribution(Logs(p), {.top_p = 0.88f}, p);
  // Exactly reached: equal logits have equal weights.
  const std::vector<float> equal(8, 0.7f);
  ExpectDistribution(equal, {.top_p = 0.5f}, {1, 1, 1, 1, 0, 0, 0, 0});
}

TEST_P(SampleTest, MinPKeepsWhatIsNearTheBest) {
  const std::vector<double> p = {0.05, 0.4, 0.1, 0.25, 0.2};
  ExpectDistribution(Logs(p), {.min_p = 0.4f}, {0, 0.4, 0, 0.25, 0.2});
  ExpectDistribution(Logs(p), {.min_p = 0.2f}, {0, 0.4, 0.1, 0.25, 0.2});
  ExpectDistribution(Logs(p), {.min_p = 1.0f}, {0, 1, 0, 0, 0});
  ExpectDistribution({2.0f, 2.0f, 1.0f}, {.min_p = 1.0f}, {1, 1, 0});
}

// top_p is measured within what top_k left, min_p against the best.
TEST_P(SampleTest, FiltersFollowEachOther) {
  const std::vector<double> p = {0.05, 0.4, 0.1, 0.2, 0.25};
  ExpectDistribution(Logs(p), {.top_p = 0.75f, .top_k = 3},
                     {0, 0.4, 0, 0, 0.25});
  ExpectDistribution(Logs(p), {.top_p = 0.8f, .top_k = 3},
                     {0, 0.4, 0, 0.2, 0.25});
  ExpectDistribution(Logs(p), {.top_p = 0.9f, .min_p = 0.6f, .top_k = 4},
                     {0, 0.4, 0, 0, 0.25});
}

// Sets of large vocabularies, flat and steep, against sorting all of it.
TEST_P(SampleTest, SetsOfLargeVocabularies) {
  for (const float sigma : {0.0f, 0.01f, 1.0f, 4.0f, 500.0f}) {
    const int vocab = 3001;
    std::vector<float> logits = RandomLogits(vocab, sigma, 6);
    // Many ties.
    for (int t = 0; t < vocab; t += 3) logits[t] = std::round(logits[t]);
    std::vector<int> order(vocab);
    for (int t = 0; t < vocab; ++t) order[t] = t;
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return logits[a] > logits[b]; });
    double total = 0.0;
    for (const float x : logits)
      total += std::exp(double{x} - logits[order[0]]);
    for (const float top_p : {0.1f, 0.5f, 0.93f}) {
      size_t size = 0;
      for (double sum = 0.0; sum < top_p * total;) {
        sum += std::exp(double{logits[order[size++]]} - logits[order[0]]);
      }
      const std::set<int> kept(order.begin(), order.begin() + size);
      for (const auto& [token, count] : Counts(logits, {.top_p = top_p}, 40)) {
        EXPECT_TRUE(kept.count(token))
            << "sigma " << sigma << ", top_p " << top_p;
      }
      const int32_t top_k = static_cast<int32_t>(size);
      for (const auto& [token, count] : Counts(logits, {.top_k = top_k}, 40)) {
        EXPECT_TRUE(kept.count(token))
            << "sigma " << sigma << ", top_k " << size;
      }
    }
  }
}

TEST_P(SampleTest, PenaltiesByHand) {
  // Token 0 generated twice, 1 in the prompt only, 2 generated once, 3 not
  // seen.
  const std::vector<TokenCount> history = {{0, 2}, {1, 0}, {2, 1}};
  const std::vector<TokenBias> bias = {{3, -0.5f}, {1, 0.25f}};
  const SampleRow row = {.repetition_penalty = 2.0f,
                         .presence_penalty = 0.5f,
                         .frequency_penalty = 0.25f,
                         .history = history,
                         .bias = bias};
  // 3 / 2 - 0.5 - 2 * 0.25;  1 / 2 + 0.25;  -0.25 * 2 - 0.5 - 0.25;  1 - 0.5
  ExpectDistribution(
      {3.0f, 1.0f, -0.25f, 1.0f}, row,
      {std::exp(0.5), std::exp(0.75), std::exp(-1.25), std::exp(0.5)});
}

// Divisions that overflow leave a choice: the token is the best then.
TEST_P(SampleTest, TinyRepetitionPenalties) {
  const std::vector<TokenCount> history = {{1, 0}, {2, 0}};
  for (float penalty : {1e-38f, 1.4e-45f}) {
    for (float temperature : {0.0f, 1.0f}) {
      const SampledToken out = SampleOne({9.0f, 2.0f, -3.0f},
                                         {.temperature = temperature,
                                          .repetition_penalty = penalty,
                                          .history = history});
      EXPECT_TRUE(out.finite);
      EXPECT_EQ(out.token, 1);
    }
  }
}

TEST_P(SampleTest, BannedAndAllowed) {
  const std::vector<float> logits = {1.0f, 5.0f, 4.0f, 3.0f};
  const std::vector<int32_t> banned = {1}, allowed = {3, 1, 0, 3};
  const std::vector<TokenBias> bias = {{2, -kInfinity}, {0, 1e6f}};
  EXPECT_EQ(SampleOne(logits, {.temperature = 0.0f, .banned = banned}).token,
            2);
  EXPECT_EQ(SampleOne(logits, {.temperature = 0.0f, .allowed = allowed}).token,
            1);
  EXPECT_EQ(
      SampleOne(logits,
                {.temperature = 0.0f, .banned = banned, .allowed = allowed})
          .token,
      3);
  EXPECT_EQ(SampleOne(logits, {.temperature = 0.0f, .bias = bias}).token, 0);
  ExpectDistribution(logits, {.banned = banned, .allowed = allowed},
                     {std::exp(1.0), 0, 0, std::exp(3.0)});
  const std::vector<int32_t> only_banned = {1};
  EXPECT_FALSE(
      SampleOne(logits, {.banned = banned, .allowed = only_banned}).finite);
}

TEST_P(SampleTest, LogprobsAreOfTheRawLogits) {
  const std::vector<double> p = {0.05, 0.4, 0.1, 0.05, 0.4};
  const std::vector<TokenBias> bias = {{3, 100.0f}};
  const SampledToken out = SampleOne(Logs(p), {.temperature = 0.7f,
                                               .bias = bias,
                                               .wants_logprobs = true,
                                               .num_top = 4});
  EXPECT_EQ(out.token, 3);
  EXPECT_NEAR(out.logprob, std::log(0.05), 1e-6);
  ASSERT_EQ(out.num_top, 4);
  const int tokens[] = {1, 4, 2, 0};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(out.top[i].token, tokens[i]);
    EXPECT_NEAR(out.top[i].logprob, std::log(p[tokens[i]]), 1e-6);
  }
  const SampledToken all =
      SampleOne(Logs(p), {.wants_logprobs = true, .num_top = 20});
  EXPECT_EQ(all.num_top, 5);
  EXPECT_EQ(SampleOne(Logs(p), {.wants_logprobs = true}).num_top, 0);
}

TEST_P(SampleTest, LogprobsOfALargeVocabulary) {
  const int vocab = 49152;
  const std::vector<float> logits = RandomLogits(vocab, 3.0f, 8);
  double sum = 0.0;
  for (const float x : logits) sum += std::exp(double{x});
  for (const int token : {0, 777, vocab - 1}) {
    const SampledToken out =
        SampleOne(logits, {.forced_token = token, .wants_logprobs = true});
    EXPECT_EQ(out.token, token);
    EXPECT_NEAR(out.logprob, logits[token] - std::log(sum), 2e-6);
  }
}

TEST_P(SampleTest, TheDrawIsAFunctionOfSeedIndexAndPosition) {
  const std::vector<float> logits(1000, 0.0f);
  const auto draw = [&](uint64_t seed, uint32_t index, uint32_t position) {
    return SampleOne(logits,
                     {.seed = seed, .index = index, .position = position})
        .token;
  };
  std::set<int> tokens;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
    for (uint32_t index = 0; index < 3; ++index) {
      for (uint32_t position = 0; position < 3; ++position) {
        tokens.insert(draw(seed, index, position));
        EXPECT_EQ(draw(seed, index, position), draw(seed, index, position));
      }
    }
  }
  EXPECT_GE(tokens.size(), 24u);  // of 27; a few may meet by chance
}

TEST_P(SampleTest, TokensDoNotDependOnTheBatch) {
  const int vocab = 700, num_rows = 11;
  std::vector<float> logits;
  std::vector<SampleRow> rows;
  for (int r = 0; r < num_rows; ++r) {
    const std::vector<float> row = RandomLogits(vocab, 2.0f, r);
    logits.insert(logits.end(), row.begin(), row.end());
    rows.push_back({.temperature = r % 4 * 0.5f,
                    .top_p = r % 3 == 0 ? 0.8f : 1.0f,
                    .top_k = r % 5 == 0 ? 300 : 0,
                    .seed = static_cast<uint64_t>(r),
                    .position = static_cast<uint32_t>(r),
                    .wants_logprobs = true,
                    .num_top = 2});
  }
  for (const int workers : {1, 2, 3}) {
    const std::vector<SampledToken> out = SampleRows(logits, rows, workers);
    for (int r = 0; r < num_rows; ++r) {
      const SampledToken alone = SampleOne(
          {logits.begin() + r * vocab, logits.begin() + (r + 1) * vocab},
          rows[r]);
      EXPECT_EQ(out[r].token, alone.token);
      EXPECT_EQ(out[r].logprob, alone.logprob);
      EXPECT_EQ(out[r].top[1].logprob, alone.top[1].logprob);
    }
  }
}

TEST_P(SampleTest, LogitsThatAreNotFinite) {
  for (const int vocab : {1, 7, 16, 40, 1000}) {
    for (const int at : {0, vocab / 2, vocab - 1}) {
      std::vector<float> logits(vocab, 1.0f);
      logits[at] = kNan;
      EXPECT_FALSE(
          SampleOne(logits, {.top_p = 0.9f, .top_k = 3, .wants_logprobs = true})
              .finite);
      EXPECT_FALSE(SampleOne(logits, {.temperature = 0.0f}).finite)
          << vocab << " at " << at;
      logits[at] = kInfinity;
      EXPECT_FALSE(SampleOne(logits, {}).finite);
    }
    EXPECT_FALSE(
        SampleOne(std::vector<float>(vocab, -kInfinity), {.top_p = 0.5f})
            .finite);
  }
  const SampledToken out = SampleOne(
      {-kInfinity, 1.0f, -kInfinity},
      {.top_p = 0.9f, .top_k = 2, .wants_logprobs = true, .num_top = 3});
  EXPECT_TRUE(out.finite);
  EXPECT_EQ(out.token, 1);
  EXPECT_EQ(out.logprob, 0.0f);
  EXPECT_EQ(out.top[1].logprob, -kInfinity);
}

INSTANTIATE_TEST_SUITE_P(All, SampleTest,
                         ::testing::Values(Isa::kPortable, Isa::kAvx2,
                                           Isa::kAvx512),
                         [](const auto& info) {
                           return std::string(IsaName(info.param));
                         });

}  // namespace
}  // namespace strata::cpu
