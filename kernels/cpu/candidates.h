#ifndef KERNELS_CPU_CANDIDATES_H_
#define KERNELS_CPU_CANDIDATES_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/cpu/logits_kernel.h"

namespace strata::cpu {

// A token and its logit.  The better one has the larger logit, among equals the
// lower id.
struct Candidate {
  float logit;
  int32_t token;

  bool IsBetterThan(const Candidate& other) const {
    return logit > other.logit || (logit == other.logit && token < other.token);
  }
};

// Worse than every token: a filter that ends here keeps all.
inline constexpr Candidate kWorstCandidate = {
    -std::numeric_limits<float>::infinity(),
    std::numeric_limits<int32_t>::max()};

// A row of logits, without NaN.
struct Logits {
  const float* x = nullptr;  // [vocab]
  const float* weights =
      nullptr;  // [vocab], the larger the better the token; 0 for -infinity
  int vocab = 0;
  float max = 0.0f;  // of x, finite
};

enum class Measure : uint8_t {
  kCount,
  kWeight,
};

// Memory of FindLast, kept between calls.
struct CandidateScratch {
  std::vector<int32_t> tokens;  // [vocab]
  std::vector<Candidate> candidates;
};

// The last token of the smallest set of best tokens whose number or weights sum
// to `target` or more; kWorstCandidate if even all tokens with finite logits do
// not.  Halves the range of logits until few are left, and sorts these.
Candidate FindLast(const Logits& logits, Measure measure, double target,
                   const LogitsKernel& kernel, CandidateScratch& scratch);

}  // namespace strata::cpu

#endif  // KERNELS_CPU_CANDIDATES_H_
