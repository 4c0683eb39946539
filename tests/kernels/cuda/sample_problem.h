#ifndef TESTS_KERNELS_CUDA_SAMPLE_PROBLEM_H_
#define TESTS_KERNELS_CUDA_SAMPLE_PROBLEM_H_

#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "kernels/sampling.h"

namespace strata {

// A SampleRow with the lists that it points to, and its logits.
struct SampleProblem {
  std::vector<float> logits = {};  // [vocab]
  std::vector<TokenCount> history = {};
  std::vector<TokenBias> bias = {};
  std::vector<int32_t> banned = {};
  std::vector<int32_t> allowed = {};
  SampleRow settings = {};  // without its lists

  SampleRow Row() const;
};

// Any setting with any other, on flat and on steep logits with many ties, some
// of them not finite.
SampleProblem RandomProblem(int vocab, std::mt19937_64& random);

// What sums in f32 may be wrong by, relative to the row's mass; and weights,
// relative to theirs.
inline constexpr double kSampleRounding = 2e-6;

// The tokens that a sampler may choose whose sums and weights are wrong by up
// to kSampleRounding: each comparison in which rounding can decide (the mass of
// top_p, the weight of min_p, the draw) is made with its threshold moved down,
// in place and up.  So there is a single token wherever rounding does not
// decide.  Computes in double, by sorting; empty if the row is not finite.
std::set<int> TokensWithinRounding(const SampleProblem& problem);

// The probabilities of all tokens without rounding; empty if not finite.
std::vector<double> ExactProbabilities(const SampleProblem& problem);

// Log-softmax of the logits, in double.
std::vector<double> ExactLogprobs(std::span<const float> logits);

}  // namespace strata

#endif  // TESTS_KERNELS_CUDA_SAMPLE_PROBLEM_H_
