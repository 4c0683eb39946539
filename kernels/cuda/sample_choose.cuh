#ifndef KERNELS_CUDA_SAMPLE_CHOOSE_CUH_
#define KERNELS_CUDA_SAMPLE_CHOOSE_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/sample_scratch.cuh"
#include "kernels/philox.h"

// How a block draws the token of a row.  Masses are exact, so that all ways to
// the same set draw the same token.
namespace strata::cuda {

inline constexpr int kDigitBits = 11;
inline constexpr int kDigits = 1 << kDigitBits;

struct ChooseMemory {
  union {
    uint64_t ranks[kMaxCandidates];
    struct {
      Mass slice_masses[kMaxSlices];
      float slice[kSliceTokens];
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

// Draws in proportion to mass(token, logit).
// `slice_masses`: its sums over the slices, visible to the block.
template <typename MassOfToken>
__device__ int DrawFromSlices(const SampleTask& task, const Mass* slice_masses,
                              MassOfToken mass, ChooseMemory& memory) {
  Mass own = 0;
  for (int s = threadIdx.x % 32; s < task.slices; s += 32)
    own += slice_masses[s];
  const Mass drawn = DrawnMass(task.row, WarpReduce(own, Sum()));
  const Reached slice = FirstReaching(
      task.slices, [&](int s) { return slice_masses[s]; }, drawn);
  const int begin = slice.index * kSliceTokens;
  const int count = min(kSliceTokens, task.vocab - begin);
  ForEachInSlice(task.logits() + begin, count,
                 [&](int i, float logit) { memory.slice[i] = logit; });
  const Reached token = FirstReaching(
      count, [&](int i) { return mass(begin + i, memory.slice[i]); },
      drawn - slice.before);
  return begin + token.index;
}

// Without top_k, top_p and min_p.
__device__ inline int DrawFromAll(const SampleTask& task,
                                  const Weights& weights,
                                  ChooseMemory& memory) {
  return DrawFromSlices(
      task, task.masses,
      [&](int, float logit) { return weights.MassOf(logit); }, memory);
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

// Adds `mass` to a digit for each lane of the warp.
__device__ inline void AddToDigits(ChooseMemory& memory, int digit, Mass mass) {
  if (!__any_sync(0xffffffffu, mass != 0)) return;
  // One addition for a warp that agrees, as most do on the first digit.
  const int digit0 = __shfl_sync(0xffffffffu, digit, 0);
  if (__all_sync(0xffffffffu, mass == 0 || digit == digit0)) {
    const Mass sum = WarpReduce(mass, Sum());
    if (threadIdx.x % 32 == 0 && sum != 0) AddToDigit(memory, digit0, sum);
  } else if (mass != 0) {
    AddToDigit(memory, digit, mass);
  }
}

// The rank of the last token of the smallest set of best ones up to which
// mass(logit) sums to `target` or more.  Finds it digit by digit.
// REQUIRES: all tokens sum to that.
template <typename MassOfLogit>
__device__ uint64_t LastRank(const SampleTask& task, MassOfLogit mass,
                             Mass target, ChooseMemory& memory) {
  // The bits that are known, and the rank as far as it is.  Tokens have 20
  // bits, so these of their complements are set.
  constexpr uint64_t kDigitMask = kDigits - 1;
  static_assert(int64_t{kMaxSlices} * kSliceTokens <= 1 << 20);
  uint64_t known = kDigitMask << 20, rank = known;
  for (const int shift : {53, 42, 31, 9, 0}) {
    for (int d = threadIdx.x; d < kDigits; d += kSampleThreads)
      memory.digit_low[d] = memory.digit_high[d] = 0;
    __syncthreads();
    for (int s = 0; s < task.slices; ++s) {
      const int begin = s * kSliceTokens;
      const auto add = [&](int i, float logit) {
        const uint64_t r = RankOf(logit, begin + i);
        // Places past the end come last, and are never reached.
        const bool counts = (r & known) == rank;
        AddToDigits(memory, static_cast<int>(r >> shift & kDigitMask),
                    counts ? mass(logit) : Mass{0});
      };
      ForEachPlace(task.logits() + begin, task.vocab - begin, add);
    }
    const auto digit_mass = [&](int i) {
      const int d = kDigits - 1 - i;
      return Mass{memory.digit_high[d]} << 32 | memory.digit_low[d];
    };
    const Reached digit = FirstReaching(kDigits, digit_mass, target);
    rank |= (kDigitMask - static_cast<uint64_t>(digit.index)) << shift;
    known |= kDigitMask << shift;
    target -= digit.before;
  }
  return rank;
}

// From the whole row, where more than the candidates may be kept.
__device__ inline int DrawFromMany(const SampleTask& task,
                                   const Weights& weights,
                                   ChooseMemory& memory) {
  const DeviceSampleRow& row = task.row;
  uint64_t last = 0;
  Mass total = MassOfRow(task);
  const auto mass = [&](float logit) { return weights.MassOf(logit); };
  const float* x = task.logits();
  const auto sum_of_slice = [&](int s, auto mass_of) {
    const int begin = s * kSliceTokens;
    Mass own = 0;
    ForEachInSlice(x + begin, task.vocab - begin, [&](int i, float logit) {
      own += mass_of(begin + i, logit);
    });
    return BlockReduce(own, Sum());
  };
  if (HasTopK(row, task.vocab)) {
    last = LastRank(
        task, [](float) { return Mass{1}; }, row.top_k, memory);
    total = 0;
    for (int s = 0; s < task.slices; ++s) {
      total += sum_of_slice(s, [&](int t, float logit) {
        return RankOf(logit, t) >= last ? mass(logit) : Mass{0};
      });
    }
  }
  // The best tokens reach this before the last of top_k.
  if (row.top_p < 1.0f)
    last = LastRank(task, mass, TopPMass(row, total), memory);

  const auto kept_mass = [&](int t, float logit) {
    return RankOf(logit, t) >= last ? weights.MassAboveMinP(logit) : Mass{0};
  };
  for (int s = 0; s < task.slices; ++s) {
    const Mass sum = sum_of_slice(s, kept_mass);
    if (threadIdx.x == 0) memory.slice_masses[s] = sum;
  }
  __syncthreads();
  return DrawFromSlices(task, memory.slice_masses, kept_mass, memory);
}

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_SAMPLE_CHOOSE_CUH_
