#include "tests/kernels/cuda/sample_problem.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/philox.h"

namespace strata {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool IsFiniteRow(const std::vector<float>& x) {
  float max = -kInfinity;
  for (const float v : x) {
    if (std::isnan(v)) return false;
    max = std::max(max, v);
  }
  return std::isfinite(max);
}

// SampleRow's steps before temperature; in f32, as their results are compared.
std::vector<float> Processed(const SampleProblem& problem) {
  const SampleRow& row = problem.settings;
  std::vector<float> x = problem.logits;
  for (const TokenCount& seen : problem.history) {
    float& v = x[seen.token];
    v = v > 0.0f ? v / row.repetition_penalty : v * row.repetition_penalty;
    v = std::clamp(v, -FLT_MAX, FLT_MAX);
    if (seen.generated == 0) continue;
    v -= row.presence_penalty;
    const float frequency = row.frequency_penalty * seen.generated;
    v -= frequency;
  }
  for (const TokenBias& bias : problem.bias) x[bias.token] += bias.bias;
  for (const int32_t token : problem.banned) x[token] = -kInfinity;
  const std::set<int32_t> allowed(problem.allowed.begin(),
                                  problem.allowed.end());
  for (size_t t = 0; !allowed.empty() && t < x.size(); ++t) {
    if (allowed.count(t) == 0) x[t] = -kInfinity;
  }
  return x;
}

// Thresholds moved by so many times kSampleRounding.
struct Shift {
  double top_p = 0.0, min_p = 0.0, draw = 0.0;
};

// The processed logits, best first.
class SortedRow {
 public:
  SortedRow(const SampleProblem& problem)
      : row_(problem.settings), x_(Processed(problem)), order_(x_.size()) {
    finite_ = IsFiniteRow(problem.logits) && IsFiniteRow(x_);
    if (!finite_) return;
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return x_[a] > x_[b]; });
  }

  bool finite() const { return finite_; }
  int best() const { return order_[0]; }

  // Of each token; 0: removed.
  std::vector<double> Weights(const Shift& shift) const {
    const double scale = std::min(1.0f / row_.temperature, FLT_MAX);
    const auto weight = [&](int t) {
      return std::exp((double{x_[t]} - x_[order_[0]]) * scale);
    };
    size_t kept = order_.size();
    if (row_.top_k > 0 && row_.top_k < static_cast<int>(kept))
      kept = row_.top_k;
    double total = 0.0;
    for (size_t i = 0; i < kept; ++i) total += weight(order_[i]);
    if (row_.top_p < 1.0f) {
      const double target =
          (row_.top_p + shift.top_p * kSampleRounding) * total;
      double sum = 0.0;
      size_t i = 0;
      do {
        sum += weight(order_[i++]);
      } while (i < kept && sum < target);
      kept = i;
    }
    const double least = row_.min_p * (1.0 + shift.min_p * kSampleRounding);
    std::vector<double> weights(x_.size(), 0.0);
    for (size_t i = 0; i < kept; ++i) {
      // The best one is kept, whatever is moved.
      const double w = weight(order_[i]);
      if (i == 0 || w >= std::min(least, 1.0)) weights[order_[i]] = w;
    }
    return weights;
  }

  int Draw(const std::vector<double>& weights, double draw_shift) const {
    double left = SampleUniform(row_.seed, row_.index, row_.position) +
                  draw_shift * kSampleRounding;
    left *= std::accumulate(weights.begin(), weights.end(), 0.0);
    int token = -1;
    for (size_t t = 0; t < weights.size() && (token < 0 || left >= 0.0); ++t) {
      if (weights[t] == 0.0) continue;
      token = t;
      left -= weights[t];
    }
    return token;
  }

 private:
  const SampleRow& row_;
  std::vector<float> x_;
  std::vector<int> order_;
  bool finite_;
};

template <typename T>
T OneOf(std::initializer_list<T> choices, std::mt19937_64& random) {
  return choices.begin()[random() % choices.size()];
}

std::vector<int> DistinctTokens(int vocab, int count, std::mt19937_64& random) {
  std::vector<int> tokens(vocab);
  std::iota(tokens.begin(), tokens.end(), 0);
  std::shuffle(tokens.begin(), tokens.end(), random);
  tokens.resize(std::min(count, vocab));
  return tokens;
}

std::vector<float> RandomLogits(int vocab, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  const float sigma = OneOf({0.0f, 0.01f, 1.0f, 1.0f, 4.0f, 30.0f}, random);
  const float mean = OneOf({0.0f, -20.0f, 7.0f}, random);
  const bool ties = random() % 2 == 0;  // -0 and 0 among them
  std::vector<float> logits(vocab);
  for (float& x : logits) {
    x = mean + sigma * normal(random);
    if (ties) x = std::round(x * 4.0f) / 4.0f;
    if (random() % 50 == 0) x = -kInfinity;
  }
  const int special = random() % 40;
  if (special == 0) logits[random() % vocab] = std::nanf("");
  if (special == 1) logits[random() % vocab] = kInfinity;
  if (special == 2) std::fill(logits.begin(), logits.end(), -kInfinity);
  return logits;
}

void AddLists(int vocab, std::mt19937_64& random, SampleProblem* problem) {
  if (random() % 3 == 0) {
    for (const int t : DistinctTokens(vocab, random() % 400, random))
      problem->history.push_back({t, static_cast<int>(random() % 4)});
  }
  if (random() % 4 == 0) {
    for (const int t : DistinctTokens(vocab, random() % 20, random)) {
      const float some = static_cast<float>(random() % 1000) / 100.0f - 5.0f;
      problem->bias.push_back({t, OneOf({some, some, -kInfinity}, random)});
    }
  }
  if (random() % 4 == 0)
    problem->banned = DistinctTokens(vocab, random() % 5, random);
  if (random() % 5 == 0) {
    problem->allowed = DistinctTokens(vocab, random() % 300, random);
    if (random() % 2 == 0 && !problem->allowed.empty())
      problem->allowed.push_back(problem->allowed[0]);
  }
}

}  // namespace

SampleRow SampleProblem::Row() const {
  SampleRow row = settings;
  row.history = history;
  row.bias = bias;
  row.banned = banned;
  row.allowed = allowed;
  return row;
}

SampleProblem RandomProblem(int vocab, std::mt19937_64& random) {
  SampleProblem problem;
  problem.logits = RandomLogits(vocab, random);
  AddLists(vocab, random, &problem);
  SampleRow& row = problem.settings;
  row.temperature = OneOf({0.0f, 1e-40f, 0.3f, 0.7f, 1.0f, 1.0f, 2.0f}, random);
  row.top_p = OneOf({1.0f, 1.0f, 0.1f, 0.5f, 0.95f, 0.9999f}, random);
  row.min_p = OneOf({0.0f, 0.0f, 0.02f, 0.5f, 1.0f}, random);
  row.top_k =
      OneOf({0, 0, 1, 5, 50, vocab / 2, vocab - 1, vocab, vocab + 1}, random);
  row.repetition_penalty = OneOf({1.0f, 1.3f, 0.7f, 1e-40f}, random);
  row.presence_penalty = OneOf({0.0f, 0.6f, -1.1f}, random);
  row.frequency_penalty = OneOf({0.0f, 0.3f, -0.7f}, random);
  row.seed = random();
  row.index = random() % 3;
  row.position = random() % 1000;
  if (random() % 10 == 0) row.forced_token = random() % vocab;
  row.wants_logprobs = random() % 3 == 0;
  if (row.wants_logprobs) row.num_top = random() % (kMaxTopLogprobs + 1);
  return problem;
}

std::set<int> TokensWithinRounding(const SampleProblem& problem) {
  const SampleRow& row = problem.settings;
  if (row.forced_token >= 0) {
    if (!IsFiniteRow(problem.logits)) return {};
    return {row.forced_token};
  }
  const SortedRow sorted(problem);
  if (!sorted.finite()) return {};
  if (row.temperature == 0.0f) return {sorted.best()};
  std::set<int> tokens;
  for (const double top_p : {-1.0, 0.0, 1.0}) {
    for (const double min_p : {-1.0, 0.0, 1.0}) {
      const std::vector<double> weights =
          sorted.Weights({.top_p = top_p, .min_p = min_p});
      for (const double draw : {-1.0, 0.0, 1.0})
        tokens.insert(sorted.Draw(weights, draw));
    }
  }
  return tokens;
}

std::vector<double> ExactProbabilities(const SampleProblem& problem) {
  const SortedRow sorted(problem);
  if (!sorted.finite()) return {};
  std::vector<double> p = sorted.Weights({});
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& v : p) v /= total;
  return p;
}

std::vector<double> ExactLogprobs(std::span<const float> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float x : logits) sum += std::exp(x - max);
  std::vector<double> logprobs;
  for (const float x : logits) logprobs.push_back(x - max - std::log(sum));
  return logprobs;
}

}  // namespace strata
