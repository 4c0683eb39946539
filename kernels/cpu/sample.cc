#include "kernels/cpu/sample.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "kernels/cpu/candidates.h"
#include "kernels/philox.h"

namespace strata::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool ChangesLogits(const SampleRow& row) {
  return !row.history.empty() || !row.bias.empty() || !row.banned.empty() ||
         !row.allowed.empty();
}

// The steps before temperature, in the order of SampleRow, from `raw` to x.
void ProcessLogits(const float* raw, int vocab, const SampleRow& row,
                   float* x) {
  std::copy(raw, raw + vocab, x);
  for (const TokenCount& seen : row.history) {
    float& logit = x[seen.token];
    logit = logit > 0.0f ? logit / row.repetition_penalty
                         : logit * row.repetition_penalty;
    // A penalty next to zero overflows; the token is the best all the same.
    logit = std::clamp(logit, -FLT_MAX, FLT_MAX);
    if (seen.generated == 0) continue;
    logit -= row.presence_penalty;
    logit -= row.frequency_penalty * static_cast<float>(seen.generated);
  }
  for (const TokenBias& bias : row.bias) x[bias.token] += bias.bias;
  for (const int32_t token : row.banned) x[token] = -kInfinity;
  if (row.allowed.empty()) return;
  // All others are removed; what an allowed token has now, it keeps.
  std::vector<float> kept;
  kept.reserve(row.allowed.size());
  for (const int32_t token : row.allowed) kept.push_back(x[token]);
  std::fill(x, x + vocab, -kInfinity);
  for (size_t i = 0; i < kept.size(); ++i) x[row.allowed[i]] = kept[i];
}

// Draws a token with a probability in proportion to its weight: the first whose
// cumulative sum, in the order of ids, exceeds uniform * sum.
int DrawToken(const float* weights, int vocab, double uniform,
              std::vector<double>& block_sums) {
  block_sums.clear();
  double total = 0.0;
  for (int begin = 0; begin < vocab; begin += kLogitsBlock) {
    const int end = std::min(begin + kLogitsBlock, vocab);
    double lanes[8] = {};
    int t = begin;
    for (; t + 8 <= end; t += 8) {
      for (int i = 0; i < 8; ++i) lanes[i] += weights[t + i];
    }
    for (; t < end; ++t) lanes[0] += weights[t];
    double sum = 0.0;
    for (const double lane : lanes) sum += lane;
    block_sums.push_back(sum);
    total += sum;
  }
  double left = uniform * total;
  size_t block = 0;
  size_t last = 0;  // with a weight
  for (; block < block_sums.size(); ++block) {
    if (block_sums[block] <= 0.0) continue;
    last = block;
    if (left < block_sums[block]) break;
    left -= block_sums[block];
  }
  const int begin = static_cast<int>(last) * kLogitsBlock;
  const int end = std::min(begin + kLogitsBlock, vocab);
  int token = begin;
  for (int t = begin; t < end; ++t) {
    if (weights[t] <= 0.0f) continue;
    token = t;
    left -= weights[t];
    if (left < 0.0) break;
  }
  return token;
}

}  // namespace

struct SampleScratch::PerWorker {
  std::vector<float> logits;   // [vocab], processed
  std::vector<float> weights;  // [vocab]
  CandidateScratch candidates;
  std::vector<double> block_sums;
};

SampleScratch::SampleScratch(int num_workers, Isa isa)
    : kernel_(GetLogitsKernel(isa)), workers_(num_workers) {}

SampleScratch::~SampleScratch() = default;

// Samples rows with one worker's memory.
class RowSampler {
 public:
  RowSampler(SampleScratch& scratch, int worker_id, int vocab)
      : kernel_(scratch.kernel_),
        memory_(scratch.workers_[worker_id]),
        vocab_(vocab) {}

  SampledToken Run(const float* raw, const SampleRow& row) const {
    SampledToken out;
    const float raw_max = kernel_.max(raw, vocab_);
    out.finite = std::isfinite(raw_max);
    if (!out.finite) return out;
    if (row.forced_token >= 0) {
      out.token = row.forced_token;
    } else if (ChangesLogits(row)) {
      memory_.logits.resize(vocab_);
      ProcessLogits(raw, vocab_, row, memory_.logits.data());
      const float max = kernel_.max(memory_.logits.data(), vocab_);
      out.finite = std::isfinite(max);
      if (!out.finite) return out;
      out.token = Choose(memory_.logits.data(), max, row);
    } else {
      out.token = Choose(raw, raw_max, row);
    }
    if (row.wants_logprobs) AddLogprobs(raw, raw_max, row.num_top, out);
    return out;
  }

 private:
  int Choose(const float* x, float max, const SampleRow& row) const {
    if (row.temperature == 0.0f) return kernel_.find(x, vocab_, max);
    memory_.weights.resize(vocab_);
    float* weights = memory_.weights.data();
    const float scale =
        std::min(1.0f / row.temperature, std::numeric_limits<float>::max());
    double total = kernel_.exp(x, vocab_, max, scale, weights);
    const Logits logits = {
        .x = x, .weights = weights, .vocab = vocab_, .max = max};
    if (row.top_k > 0 && row.top_k < vocab_) {
      total = DropWorse(x,
                        FindLast(logits, Measure::kCount, row.top_k, kernel_,
                                 memory_.candidates),
                        weights);
    }
    if (row.top_p < 1.0f) {
      const double target = double{row.top_p} * total;
      DropWorse(x,
                FindLast(logits, Measure::kWeight, target, kernel_,
                         memory_.candidates),
                weights);
    }
    // The best token's weight is 1.
    for (int t = 0; row.min_p > 0.0f && t < vocab_; ++t) {
      if (weights[t] < row.min_p) weights[t] = 0.0f;
    }
    return DrawToken(weights, vocab_,
                     SampleUniform(row.seed, row.index, row.position),
                     memory_.block_sums);
  }

  // Sets the weights of tokens worse than `last` to 0; returns the sum of the
  // others.
  double DropWorse(const float* x, const Candidate& last,
                   float* weights) const {
    const double sum = kernel_.keep(x, vocab_, last.logit, weights);
    if (last.logit == -kInfinity) return sum;
    std::vector<int32_t>& equal = memory_.candidates.tokens;
    const int count =
        kernel_.collect(x, vocab_, last.logit,
                        std::nextafter(last.logit, kInfinity), equal.data());
    double dropped = 0.0;
    for (int i = 0; i < count; ++i) {
      if (equal[i] <= last.token) continue;
      dropped += weights[equal[i]];
      weights[equal[i]] = 0.0f;
    }
    return sum - dropped;
  }

  void AddLogprobs(const float* raw, float max, int num_top,
                   SampledToken& out) const {
    const double log_sum =
        std::log(kernel_.exp(raw, vocab_, max, 1.0f, nullptr));
    const auto logprob = [&](float logit) {
      return static_cast<float>(double{logit} - max - log_sum);
    };
    out.logprob = logprob(raw[out.token]);
    out.num_top = std::min(num_top, vocab_);
    // The best so far, sorted; a later token passes only strictly worse ones.
    Candidate best[kMaxTopLogprobs];
    int count = 0;
    for (int t = 0; out.num_top > 0 && t < vocab_; ++t) {
      if (count == out.num_top && raw[t] <= best[count - 1].logit) continue;
      int at = count < out.num_top ? count++ : count - 1;
      for (; at > 0 && best[at - 1].logit < raw[t]; --at)
        best[at] = best[at - 1];
      best[at] = {raw[t], t};
    }
    for (int i = 0; i < count; ++i)
      out.top[i] = {best[i].token, logprob(best[i].logit)};
  }

  const LogitsKernel& kernel_;
  SampleScratch::PerWorker& memory_;
  const int vocab_;
};

void Sample(const SampleArgs& args, SampleScratch& scratch,
            const Worker& worker) {
  const RowSampler sampler(scratch, worker.id, args.vocab);
  const Share share = worker.ShareOf(args.rows.size());
  for (int64_t r = share.begin; r < share.end; ++r) {
    args.out[r] = sampler.Run(args.logits + r * args.vocab, args.rows[r]);
  }
}

}  // namespace strata::cpu
