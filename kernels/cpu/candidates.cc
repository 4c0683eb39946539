#include "kernels/cpu/candidates.h"

#include <algorithm>
#include <cmath>

namespace strata::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// So few are sorted rather than separated further.
constexpr double kFewTokens = 128;

// The best tokens lie here nearly always; the last range has all finite logits.
constexpr float kRanges[] = {8.0f, 32.0f, 512.0f, kInfinity};

// A threshold, and the tokens with logits that reach it.
struct Cut {
  float threshold;
  double count;
  double sum;  // of what is measured
};

Cut CutAt(const Logits& logits, Measure measure, float threshold,
          const LogitsKernel& kernel) {
  const LogitsMeasure m =
      kernel.measure(logits.x, logits.weights, logits.vocab, threshold);
  return {threshold, m.count, measure == Measure::kCount ? m.count : m.mass};
}

}  // namespace

Candidate FindLast(const Logits& logits, Measure measure, double target,
                   const LogitsKernel& kernel, CandidateScratch& scratch) {
  // What reaches `high` is less than the target, what reaches `low` is not.
  Cut high = {std::nextafter(logits.max, kInfinity), 0.0, 0.0}, low = high;
  for (const float range : kRanges) {
    const float lowest = std::numeric_limits<float>::lowest();
    low = CutAt(logits, measure, std::max(lowest, logits.max - range), kernel);
    if (low.sum >= target) break;
    if (low.threshold == lowest) return kWorstCandidate;
    high = low;
  }
  while (low.count - high.count > kFewTokens) {
    const float middle = low.threshold / 2 + high.threshold / 2;
    // Neighbours: all that are left are equal.
    if (!(middle > low.threshold && middle < high.threshold)) break;
    const Cut cut = CutAt(logits, measure, middle, kernel);
    (cut.sum < target ? high : low) = cut;
  }
  scratch.tokens.resize(logits.vocab);
  const int count = kernel.collect(logits.x, logits.vocab, low.threshold,
                                   high.threshold, scratch.tokens.data());
  scratch.candidates.clear();
  for (int i = 0; i < count; ++i) {
    const int32_t token = scratch.tokens[i];
    scratch.candidates.push_back({logits.x[token], token});
  }
  std::sort(
      scratch.candidates.begin(), scratch.candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.IsBetterThan(b); });
  double sum = high.sum;
  for (const Candidate& candidate : scratch.candidates) {
    sum += measure == Measure::kCount ? 1.0
                                      : double{logits.weights[candidate.token]};
    if (sum >= target) return candidate;
  }
  // The weights were added in another order than above; the rounding made the
  // difference.
  return scratch.candidates.empty() ? kWorstCandidate
                                    : scratch.candidates.back();
}

}  // namespace strata::cpu
