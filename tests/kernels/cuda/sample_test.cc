#include "kernels/cpu/sample.h"

#include <cuda_runtime_api.h>
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
#include "kernels/cuda/ops.h"
#include "tests/kernels/cuda/sample_problem.h"
#include "tests/testing/device_array.h"
#include "tests/testing/for_each_schedule.h"

namespace strata::cuda {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows as Sample takes them.  What lies around the lists would change a choice.
struct DeviceRows {
  std::vector<float> logits;
  std::vector<DeviceSampleRow> rows;
  std::vector<DeviceTokenCount> history = {{0, 9}};
  std::vector<DeviceTokenBias> bias = {{0, kNan}};
  std::vector<int32_t> tokens = {0};

  void Add(const SampleProblem& problem) {
    const SampleRow& row = problem.settings;
    logits.insert(logits.end(), problem.logits.begin(), problem.logits.end());
    rows.push_back({.temperature = row.temperature,
                    .top_p = row.top_p,
                    .min_p = row.min_p,
                    .top_k = row.top_k,
                    .repetition_penalty = row.repetition_penalty,
                    .presence_penalty = row.presence_penalty,
                    .frequency_penalty = row.frequency_penalty,
                    .seed = row.seed,
                    .index = row.index,
                    .position = row.position,
                    .history = static_cast<int64_t>(history.size()),
                    .bias = static_cast<int64_t>(bias.size()),
                    .banned = static_cast<int64_t>(tokens.size()),
                    .allowed = 0,  // below
                    .num_history = static_cast<int>(problem.history.size()),
                    .num_bias = static_cast<int>(problem.bias.size()),
                    .num_banned = static_cast<int>(problem.banned.size()),
                    .num_allowed = static_cast<int>(problem.allowed.size()),
                    .forced_token = row.forced_token,
                    .wants_logprobs = row.wants_logprobs,
                    .num_top = row.num_top});
    for (const TokenCount& seen : problem.history)
      history.push_back({seen.token, seen.generated});
    for (const TokenBias& entry : problem.bias)
      bias.push_back({entry.token, entry.bias});
    const auto append = [&](const std::vector<int32_t>& list) {
      tokens.insert(tokens.end(), list.begin(), list.end());
      tokens.push_back(0);
    };
    append(problem.banned);
    rows.back().allowed = static_cast<int64_t>(tokens.size());
    append(problem.allowed);
    history.push_back({0, 9});
    bias.push_back({0, kNan});
  }
};

// Of one vocabulary.
std::vector<DeviceSampledToken> SampleOnDevice(
    const std::vector<SampleProblem>& problems) {
  const int rows = static_cast<int>(problems.size());
  const int vocab = static_cast<int>(problems[0].logits.size());
  DeviceRows host;
  for (const SampleProblem& problem : problems) host.Add(problem);
  const DeviceArray<float> logits(host.logits);
  const DeviceArray<DeviceSampleRow> samples(host.rows);
  const DeviceArray<DeviceTokenCount> history(host.history);
  const DeviceArray<DeviceTokenBias> bias(host.bias);
  const DeviceArray<int32_t> tokens(host.tokens);
  const DeviceArray<DeviceSampledToken> out(rows);
  const DeviceArray<char> scratch(SampleScratchBytes(rows, vocab));
  out.FillWithNan();
  scratch.FillWithNan();
  EXPECT_EQ(Sample({.logits = logits.get(),
                    .vocab = vocab,
                    .rows = rows,
                    .samples = samples.get(),
                    .history = history.get(),
                    .bias = bias.get(),
                    .tokens = tokens.get(),
                    .out = out.get(),
                    .scratch = scratch.get()},
                   nullptr),
            cudaSuccess);
  return out.ToHost();
}

SampledToken SampleOnCpu(SampleProblem problem) {
  std::vector<SampledToken> out(1);
  const std::vector<SampleRow> rows = {problem.Row()};
  const strata::SampleArgs args = {
      .logits = problem.logits.data(),
      .vocab = static_cast<int>(problem.logits.size()),
      .rows = rows,
      .out = out.data()};
  cpu::SampleScratch scratch(1, cpu::DetectIsa());
  cpu::ThreadTeam team(1);
  team.Run(
      [&](const cpu::Worker& worker) { cpu::Sample(args, scratch, worker); });
  return out[0];
}

void ExpectLogprobs(const SampleProblem& problem, const SampledToken& want,
                    const DeviceSampledToken& got) {
  const auto expect_near = [](float got, double want) {
    if (std::isinf(want)) {
      EXPECT_EQ(got, want);
    } else {
      EXPECT_NEAR(got, want, 2e-6 + 1e-6 * std::abs(want));
    }
  };
  const std::vector<double> logprobs = ExactLogprobs(problem.logits);
  expect_near(got.logprob, logprobs[got.token]);
  ASSERT_EQ(got.num_top, want.num_top);
  for (int i = 0; i < want.num_top; ++i) {
    EXPECT_EQ(got.top_tokens[i], want.top[i].token) << "top " << i;
    expect_near(got.top_logprobs[i], want.top[i].logprob);
  }
}

// Returns whether rounding may decide this row's token.
bool ExpectAsOnCpu(const SampleProblem& problem,
                   const DeviceSampledToken& got) {
  const SampledToken want = SampleOnCpu(problem);
  const std::set<int> tokens = TokensWithinRounding(problem);
  EXPECT_EQ(want.finite, !tokens.empty());
  EXPECT_EQ(got.finite, want.finite);
  if (!got.finite || !want.finite) return false;
  EXPECT_TRUE(tokens.count(want.token)) << "CPU: " << want.token;
  EXPECT_TRUE(tokens.count(got.token)) << got.token << ", CPU: " << want.token
                                       << ", within rounding " << tokens.size();
  if (problem.settings.wants_logprobs) ExpectLogprobs(problem, want, got);
  return tokens.size() > 1;
}

std::string Describe(const SampleProblem& p) {
  const SampleRow& row = p.settings;
  return (::testing::Message()
          << "temperature " << row.temperature << ", top_k " << row.top_k
          << ", top_p " << row.top_p << ", min_p " << row.min_p << ", lists "
          << p.history.size() << " " << p.bias.size() << " " << p.banned.size()
          << " " << p.allowed.size())
      .GetString();
}

// Samples `count` random rows, each with all others; returns for how many of
// them rounding may decide.
int ExpectRandomRowsAsOnCpu(int vocab, int count, uint64_t seed) {
  SCOPED_TRACE(::testing::Message()
               << "vocabulary " << vocab << ", seed " << seed);
  std::mt19937_64 random(seed);
  std::vector<SampleProblem> problems;
  for (int i = 0; i < count; ++i)
    problems.push_back(RandomProblem(vocab, random));
  const std::vector<DeviceSampledToken> got = SampleOnDevice(problems);
  int close = 0;
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(::testing::Message()
                 << "row " << i << ": " << Describe(problems[i]));
    close += ExpectAsOnCpu(problems[i], got[i]);
  }
  return close;
}

// Other rows under every schedule: the test is of their number.
TEST(SampleTest, RandomRowsAsOnCpu) {
  const struct {
    int vocab, count;
  } kinds[] = {{1, 20}, {31, 120}, {257, 100}, {1000, 70}, {5000, 30}};
  uint64_t seed = 1;
  int rows = 0, close = 0;
  ForEachSchedule(4, [&] {
    for (const auto& [vocab, count] : kinds) {
      close += ExpectRandomRowsAsOnCpu(vocab, count, seed++);
      rows += count;
    }
  });
  RecordProperty("rows", rows);
  RecordProperty("rows_where_rounding_may_decide", close);
  EXPECT_LT(close, rows / 50) << "the test allows too much";
}

// A bin of the candidates' depths has one token each, so that a bin too few is
// a token too few.
TEST(SampleTest, LastTokenThatIsKeptAsOnCpu) {
  std::mt19937_64 random(5);
  std::vector<SampleProblem> problems;
  for (int i = 0; i < 60; ++i) {
    SampleProblem problem;
    for (int t = 0; t < 40; ++t) problem.logits.push_back(-0.26f * t);
    std::shuffle(problem.logits.begin(), problem.logits.end(), random);
    const auto add = [&](SampleRow settings) {
      settings.seed = random();
      problem.settings = settings;
      problems.push_back(problem);
    };
    add({.top_k = 1 + i % 12});
    add({.top_p = 0.2f + i % 12 * 0.06f});
    add({.min_p = 0.1f + i % 12 * 0.07f});
    add({.top_p = 0.9f, .min_p = 0.3f, .top_k = 3 + i % 12});
  }
  const std::vector<DeviceSampledToken> got = SampleOnDevice(problems);
  for (size_t i = 0; i < problems.size(); ++i) {
    SCOPED_TRACE(::testing::Message()
                 << "row " << i << ": " << Describe(problems[i]));
    ExpectAsOnCpu(problems[i], got[i]);
  }
}

// More than the candidates are kept: the row is searched.
TEST(SampleTest, LargeSetsAsOnCpu) {
  const int vocab = 2 * 4096 + 5;
  ForEachSchedule(4, [&] {
    std::mt19937_64 random(7);
    std::vector<SampleProblem> problems;
    for (const float sigma : {0.0f, 0.3f}) {
      std::normal_distribution<float> normal(2.0f, sigma);
      std::vector<float> logits(vocab);
      // -0.02, -0, 0 and so on: many ties.
      for (float& x : logits) x = std::round(normal(random) * 50.0f) / 50.0f;
      const auto add = [&](SampleRow settings) {
        settings.seed = random();
        problems.push_back({.logits = logits, .settings = settings});
      };
      add({.top_p = 0.9f});
      add({.top_k = 6000});
      add({.top_k = 4096});
      add({.top_k = 4097});
      add({.top_p = 0.8f, .top_k = 7000});
      add({.min_p = 0.001f});
      add({.top_p = 0.97f, .min_p = 0.2f, .top_k = 8000});
    }
    const std::vector<DeviceSampledToken> got = SampleOnDevice(problems);
    for (size_t i = 0; i < problems.size(); ++i) {
      SCOPED_TRACE(::testing::Message()
                   << "row " << i << ": " << Describe(problems[i]));
      ExpectAsOnCpu(problems[i], got[i]);
    }
  });
}

// Draws at positions 0, 1, ...: chi-square at about one in a million.
void ExpectDistribution(SampleProblem problem, int draws) {
  std::vector<SampleProblem> problems;
  for (int i = 0; i < draws; ++i) {
    problem.settings.position = i;
    problems.push_back(problem);
  }
  const std::vector<double> p = ExactProbabilities(problem);
  std::vector<int> counts(p.size(), 0);
  for (const DeviceSampledToken& out : SampleOnDevice(problems))
    ++counts[out.token];
  double chi_square = 0.0;
  int kinds = 0;
  for (size_t t = 0; t < p.size(); ++t) {
    if (p[t] == 0.0) {
      EXPECT_EQ(counts[t], 0) << "token " << t;
      continue;
    }
    chi_square +=
        (counts[t] - p[t] * draws) * (counts[t] - p[t] * draws) / p[t] / draws;
    ++kinds;
  }
  ASSERT_GT(kinds, 5);
  // Wilson and Hilferty's approximation of the quantile.
  const double v = 2.0 / (9.0 * (kinds - 1));
  const double limit =
      (kinds - 1) * std::pow(1.0 - v + 4.75 * std::sqrt(v), 3.0);
  EXPECT_LT(chi_square, limit) << kinds << " tokens";
}

TEST(SampleTest, Distribution) {
  SampleProblem problem;
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  for (int t = 0; t < 60; ++t) problem.logits.push_back(normal(random));
  problem.settings = {.temperature = 0.8f, .seed = 12};
  ExpectDistribution(problem, 400);
  problem.settings.top_k = 20;
  problem.settings.top_p = 0.9f;
  ExpectDistribution(problem, 400);
}

// Whatever else is in the batch, and for every slice that the token is in.
TEST(SampleTest, TokensDoNotDependOnTheBatch) {
  const int vocab = 2 * 4096 + 1;
  std::mt19937_64 random(13);
  std::vector<SampleProblem> problems;
  for (int i = 0; i < 12; ++i) problems.push_back(RandomProblem(vocab, random));
  const std::vector<DeviceSampledToken> together = SampleOnDevice(problems);
  for (size_t i = 0; i < problems.size(); ++i) {
    const DeviceSampledToken alone = SampleOnDevice({problems[i]})[0];
    EXPECT_EQ(together[i].finite, alone.finite);
    EXPECT_EQ(together[i].token, alone.token);
    EXPECT_EQ(together[i].logprob, alone.logprob);
    EXPECT_EQ(together[i].num_top, alone.num_top);
  }
}

TEST(SampleTest, GreedyTakesTheLowestOfTheLargest) {
  const int vocab = 3 * 4096;
  ForEachSchedule(4, [&] {
    for (const int at : {0, 4095, 4096, 12286}) {
      SampleProblem problem;
      problem.logits.assign(vocab, -1.0f);
      problem.logits[at] = -0.0f;
      problem.logits[at + 1] = problem.logits[vocab - 1] = 0.0f;
      problem.settings = {.temperature = 0.0f};
      EXPECT_EQ(SampleOnDevice({problem})[0].token, at);
    }
  });
}

TEST(SampleTest, NotFiniteInAnySlice) {
  const int vocab = 2 * 4096 + 100;
  std::vector<SampleProblem> problems;
  for (const float bad : {kNan, -kNan, kInfinity}) {
    for (const int at : {0, 5000, vocab - 1}) {
      for (const float temperature : {0.0f, 1.0f}) {
        problems.push_back({.logits = std::vector<float>(vocab, 1.0f),
                            .settings = {.temperature = temperature,
                                         .top_p = 0.5f,
                                         .wants_logprobs = true}});
        problems.back().logits[at] = bad;
        // Processing does not hide it.
        if (at == 0) problems.back().banned = {at};
      }
    }
  }
  problems.push_back({.logits = std::vector<float>(vocab, -kInfinity)});
  for (const DeviceSampledToken& out : SampleOnDevice(problems)) {
    EXPECT_EQ(out.finite, 0);
    EXPECT_EQ(out.num_top, 0);
  }
}

TEST(SampleTest, RefusesWhatItHasNoSlicesFor) {
  EXPECT_EQ(Sample({.vocab = 256 * 4096 + 1, .rows = 1}, nullptr),
            cudaErrorInvalidValue);
  EXPECT_EQ(Sample({.vocab = 10, .rows = 0}, nullptr), cudaSuccess);
}

}  // namespace
}  // namespace strata::cuda
