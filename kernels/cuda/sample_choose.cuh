#ifndef KERNELS_CUDA_SAMPLE_CHOOSE_CUH_
#define KERNELS_CUDA_SAMPLE_CHOOSE_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/sample_scratch.cuh"
#include "kernels/philox.h"

// How a block draws the token of a row.  Masses are exact, so that all ways to
// the same set draw the same token.
namespace strata::cuda {

inline constexpr int kDigits = 256;

struct ChooseMemory {
  union {
    uint64_t ranks[kMaxCandidates];
    struct {
      Mass slice_masses[kMaxSlices];
      uint32_t digit_low[kDigits];  // a Mass in two words
      uint32_t digit_high[kDigits];
    };
  };
};

// The mass that the drawn token reaches first, in the order of tokens.
__device__ inline Mass DrawnMass(const DeviceSampleRow& row, Mass total) {
  const double uniform = SampleUniform(row.seed, row.index, row.position);
  return static_cast<Mass>(uniform * static_cast<double>(total)) + 1;
}

// The mass that the set of top_p reaches.
__device__ inline Mass TopPMass(const DeviceSampleRow& row, Mass total) {
  return static_cast<Mass>(
      ceil(static_cast<double>(row.top_p) * static_cast<double>(total)));
}

// Draws in proportion to mass(token).
// `slice_masses`: its sums over the slices, visible to the block.
template <typename MassOfToken>
__device__ int DrawFromSlices(const SampleTask& task, const Mass* slice_masses,
                              MassOfToken mass) {
  Mass own = 0;
  for (int s = threadIdx.x % 32; s < task.slices; s += 32)
    own += slice_masses[s];
  const Mass drawn = DrawnMass(task.row, WarpReduce(own, Sum()));
  const Reached slice = FirstReaching(
      task.slices, [&](int s) { return slice_masses[s]; }, drawn);
  const int begin = slice.index * kSliceTokens;
  const Reached token = FirstReaching(
      min(kSliceTokens, task.vocab - begin),
      [&](int i) { return mass(begin + i); }, drawn - slice.before);
  return begin + token.index;
}

// Without top_k, top_p and min_p.
__device__ inline int DrawFromAll(const SampleTask& task,
                                  const Weights& weights) {
  const float* x = task.logits();
  return DrawFromSlices(task, task.masses,
                        [&](int t) { return weights.MassOf(x[t]); });
}

// From the candidates, among which are all tokens that are kept.
__device__ inline int DrawFromCandidates(const SampleTask& task,
                                         const Weights& weights, int count,
                                         uint64_t* ranks) {
  const DeviceSampleRow& row = task.row;
  for (int i = threadIdx.x; i < count; i += kSampleThreads)
    ranks[i] = task.candidates[i];
  SortFalling(ranks, count);
  const auto mass = [&](int i) { return weights.MassOf(LogitOf(ranks[i])); };
  const auto sum = [&](int n, auto mass_of) {
    Mass own = 0;
    for (int i = threadIdx.x; i < n; i += kSampleThreads) own += mass_of(i);
    return BlockReduce(own, Sum());
  };
  int kept = count;
  const bool has_top_k = HasTopK(row, task.vocab);
  if (has_top_k) kept = min(kept, row.top_k);
  if (row.top_p < 1.0f) {
    const Mass total = has_top_k ? sum(kept, mass) : MassOfRow(task);
    const Reached last = FirstReaching(kept, mass, TopPMass(row, total));
    kept = min(kept, last.index + 1);
  }
  // From (logit, token) to (token, logit), to sort by token.
  for (int i = threadIdx.x; i < kept; i += kSampleThreads) {
    const uint64_t rank = ranks[i];
    ranks[i] = rank << 32 | rank >> 32;
  }
  SortFalling(ranks, kept);  // the lowest token first
  const auto swapped = [&](int i) { return ranks[i] << 32 | ranks[i] >> 32; };
  const auto kept_mass = [&](int i) {
    return weights.MassAboveMinP(LogitOf(swapped(i)));
  };
  const Mass drawn = DrawnMass(row, sum(kept, kept_mass));
  return TokenOf(swapped(FirstReaching(kept, kept_mass, drawn).index));
}

// Shared memory has no fast addition of 64 bits: the lower word carries.
__device__ inline void AddToDigit(ChooseMemory& memory, int digit, Mass mass) {
  const uint32_t low = static_cast<uint32_t>(mass);
  const uint32_t old = atomicAdd(&memory.digit_low[digit], low);
  const uint32_t high = static_cast<uint32_t>(mass >> 32) + (old + low < old);
  if (high != 0) atomicAdd(&memory.digit_high[digit], high);
}

// The rank of the last token of the smallest set of best ones up to which
// mass(logit) sums to `target` or more, among those with rank >= floor.  Finds
// it digit by digit.  REQUIRES: all of these sum to that.
template <typename MassOfLogit>
__device__ uint64_t LastRank(const SampleTask& task, uint64_t floor,
                             MassOfLogit mass, Mass target,
                             ChooseMemory& memory) {
  const float* x = task.logits();
  uint64_t rank = 0, known = 0;  // the digits found, and where they are
  for (int shift = 56; shift >= 0; shift -= 8) {
    for (int d = threadIdx.x; d < kDigits; d += kSampleThreads)
      memory.digit_low[d] = memory.digit_high[d] = 0;
    __syncthreads();
    for (int first = 0; first < task.vocab; first += kSampleThreads) {
      const int t = first + threadIdx.x;
      const uint64_t r = t < task.vocab ? RankOf(x[t], t) : 0;
      const bool counts = r != 0 && r >= floor && (r & known) == rank;
      const int digit = static_cast<int>(r >> shift) & (kDigits - 1);
      const Mass m = counts ? mass(x[t]) : 0;
      // One addition for a warp that agrees, as most do on the first digits.
      const int digit0 = __shfl_sync(0xffffffffu, digit, 0);
      if (__all_sync(0xffffffffu, m == 0 || digit == digit0)) {
        const Mass sum = WarpReduce(m, Sum());
        if (threadIdx.x % 32 == 0 && sum != 0) AddToDigit(memory, digit0, sum);
      } else if (m != 0) {
        AddToDigit(memory, digit, m);
      }
    }
    const auto digit_mass = [&](int i) {
      const int d = kDigits - 1 - i;
      return Mass{memory.digit_high[d]} << 32 | memory.digit_low[d];
    };
    const Reached digit = FirstReaching(kDigits, digit_mass, target);
    rank |= uint64_t(kDigits - 1 - digit.index) << shift;
    known |= uint64_t{kDigits - 1} << shift;
    target -= digit.before;
  }
  return rank;
}

// From the whole row, where more than the candidates may be kept.
__device__ inline int DrawFromMany(const SampleTask& task,
                                   const Weights& weights,
                                   ChooseMemory& memory) {
  const DeviceSampleRow& row = task.row;
  const float* x = task.logits();
  uint64_t last = 0;
  Mass total = MassOfRow(task);
  const auto mass = [&](float logit) { return weights.MassOf(logit); };
  if (HasTopK(row, task.vocab)) {
    const auto one = [](float) { return Mass{1}; };
    last = LastRank(task, last, one, row.top_k, memory);
    Mass own = 0;
    for (int t = threadIdx.x; t < task.vocab; t += kSampleThreads) {
      if (RankOf(x[t], t) >= last) own += mass(x[t]);
    }
    total = BlockReduce(own, Sum());
  }
  if (row.top_p < 1.0f)
    last = LastRank(task, last, mass, TopPMass(row, total), memory);

  const auto kept_mass = [&](int t) {
    return RankOf(x[t], t) >= last ? weights.MassAboveMinP(x[t]) : Mass{0};
  };
  for (int s = threadIdx.x / 32; s < task.slices; s += kSampleWarps) {
    const int end = min((s + 1) * kSliceTokens, task.vocab);
    Mass own = 0;
    for (int t = s * kSliceTokens + threadIdx.x % 32; t < end; t += 32)
      own += kept_mass(t);
    const Mass sum = WarpReduce(own, Sum());
    if (threadIdx.x % 32 == 0) memory.slice_masses[s] = sum;
  }
  __syncthreads();
  return DrawFromSlices(task, memory.slice_masses, kept_mass);
}

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_SAMPLE_CHOOSE_CUH_
