#include "kernels/cpu/candidates.h"

#include <algorithm>
#include <cmath>

namespace strata::cpu {
namespace {

// So few are sorted rather than separated further.
constexpr double kFewTokens = 128;

double MeasureFrom(const Logits& logits, float threshold,
                   const LogitsKernel& kernel) {
  return logits.weights == nullptr
             ? kernel.count(logits.x, logits.vocab, threshold)
             : kernel.mass(logits.x, logits.weights, logits.vocab, threshold);
}

// Logits with low <= x < high (x = low alone if equal is left), ascending ids.
void Collect(const Logits& logits, float low, float high,
             std::vector<Candidate>& out) {
  out.clear();
  for (int t = 0; t < logits.vocab; ++t) {
    if (logits.x[t] >= low && logits.x[t] < high)
      out.push_back({logits.x[t], t});
  }
}

}  // namespace

Candidate FindLast(const Logits& logits, double target,
                   const LogitsKernel& kernel,
                   std::vector<Candidate>& scratch) {
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // Measures from `high` on are below the target, those from `low` on are not.
  float low = logits.max - 16.0f, high = kInfinity;
  if (MeasureFrom(logits, low, kernel) < target) {
    high = low;
    low = kLowest;
    if (MeasureFrom(logits, low, kernel) < target) return kWorstCandidate;
  }
  double sum = high == kInfinity ? 0.0 : MeasureFrom(logits, high, kernel);
  float top = std::min(high, std::nextafter(logits.max, kInfinity));
  while (kernel.count(logits.x, logits.vocab, low) -
             kernel.count(logits.x, logits.vocab, top) >
         kFewTokens) {
    const float middle = low / 2 + top / 2;
    if (!(middle > low && middle < top)) break;
    const double measure = MeasureFrom(logits, middle, kernel);
    if (measure < target) {
      top = middle;
      sum = measure;
    } else {
      low = middle;
    }
  }
  Collect(logits, low, top, scratch);
  std::sort(
      scratch.begin(), scratch.end(),
      [](const Candidate& a, const Candidate& b) { return a.IsBetterThan(b); });
  for (const Candidate& candidate : scratch) {
    sum += logits.weights == nullptr ? 1.0
                                     : double{logits.weights[candidate.token]};
    if (sum >= target) return candidate;
  }
  // The weights were added in another order than above; the rounding made the
  // difference.
  return scratch.empty() ? kWorstCandidate : scratch.back();
}

}  // namespace strata::cpu
