#ifndef KERNELS_CUDA_SAMPLE_LOGITS_CUH_
#define KERNELS_CUDA_SAMPLE_LOGITS_CUH_

#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

#include "kernels/cuda/ops.h"
#include "kernels/cuda/sample_block.cuh"

// Logits, their order and their weights.
namespace strata::cuda {

// A row is worked on in slices, a block each.
inline constexpr int kSliceTokens = 4096;
inline constexpr int kMaxSlices = kSampleThreads;

// Calls body(i, logit) for each place i of a slice, in the same order in all
// lanes: with x[i] in global memory, from `count` on with -infinity.  All of a
// thread's are asked for before the first is looked at.
template <typename Body>
__device__ void ForEachPlace(const float* x, int count, Body body) {
  constexpr int kShare = kSliceTokens / kSampleThreads;
  float logits[kShare];
#pragma unroll
  for (int j = 0; j < kShare; ++j) {
    const int i = threadIdx.x + j * kSampleThreads;
    logits[j] = i < count ? x[i] : -__builtin_huge_valf();
  }
#pragma unroll
  for (int j = 0; j < kShare; ++j)
    body(static_cast<int>(threadIdx.x) + j * kSampleThreads, logits[j]);
}

// The same for the first `count` places alone.
template <typename Body>
__device__ void ForEachInSlice(const float* x, int count, Body body) {
  ForEachPlace(x, count, [&](int i, float logit) {
    if (i < count) body(i, logit);
  });
}

// A number that rises with the logit and, among equals, falls with the token:
// the better token has the larger rank.  A NaN is above all; no rank is 0.
__device__ inline uint64_t RankOf(float logit, int token) {
  const uint32_t bits = __float_as_uint(logit == 0.0f ? 0.0f : logit);
  uint32_t key = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  if (logit != logit) key = 0xffffffffu;
  return uint64_t{key} << 32 | ~static_cast<uint32_t>(token);
}
__device__ inline float LogitOf(uint64_t rank) {
  const uint32_t key = static_cast<uint32_t>(rank >> 32);
  return __uint_as_float(key >> 31 != 0 ? key & 0x7fffffffu : ~key);
}
__device__ inline int TokenOf(uint64_t rank) {
  return static_cast<int>(~static_cast<uint32_t>(rank));
}

__device__ inline bool IsFinite(float v) { return fabsf(v) <= FLT_MAX; }

__device__ inline bool ChangesLogits(const DeviceSampleRow& row) {
  return row.forced_token < 0 &&
         row.num_history + row.num_bias + row.num_banned + row.num_allowed > 0;
}
__device__ inline bool Draws(const DeviceSampleRow& row) {
  return row.forced_token < 0 && row.temperature != 0.0f;
}
__device__ inline bool HasTopK(const DeviceSampleRow& row, int vocab) {
  return row.top_k > 0 && row.top_k < vocab;
}
__device__ inline bool Filters(const DeviceSampleRow& row, int vocab) {
  return Draws(row) &&
         (HasTopK(row, vocab) || row.top_p < 1.0f || row.min_p > 0.0f);
}

// Weights relative to that of the row's best token, which is 1.
class Weights {
 public:
  __device__ Weights(float max, const DeviceSampleRow& row)
      : max_(max),
        scale_(fminf(1.0f / row.temperature, FLT_MAX)),
        min_p_(row.min_p) {}

  // What e is raised to is minus this.
  __device__ float Depth(float logit) const { return (max_ - logit) * scale_; }

  __device__ Mass MassOf(float logit) const {
    return MassOfWeight(expf(-Depth(logit)));
  }
  // 0 where min_p removes the token.
  __device__ Mass MassAboveMinP(float logit) const {
    const float weight = expf(-Depth(logit));
    return weight < min_p_ ? 0 : MassOfWeight(weight);
  }

 private:
  __device__ static Mass MassOfWeight(float weight) {
    return static_cast<Mass>(weight * 0x1p43f);
  }

  float max_;
  float scale_;
  float min_p_;
};

// The steps before temperature, in the order of SampleRow, on the `count`
// logits x from token `begin` on.  Each step is a loop over its whole list.
// `allowed`: memory for a flag a logit.  Ends with x visible to the block.
__device__ inline void ProcessSlice(const SampleArgs& args,
                                    const DeviceSampleRow& row, int begin,
                                    int count, float* x, uint8_t* allowed) {
  const int first = threadIdx.x;
  const auto in_slice = [&](int at) { return at >= 0 && at < count; };
  for (int i = first; i < row.num_history; i += kSampleThreads) {
    const DeviceTokenCount seen = args.history[row.history + i];
    const int at = seen.token - begin;
    if (!in_slice(at)) continue;
    float logit = x[at];
    logit = logit > 0.0f ? logit / row.repetition_penalty
                         : logit * row.repetition_penalty;
    // A penalty next to zero overflows; the token is the best all the same.
    logit = logit < -FLT_MAX ? -FLT_MAX : logit > FLT_MAX ? FLT_MAX : logit;
    if (seen.generated != 0) {
      logit -= row.presence_penalty;
      // Rounded before it is subtracted, as the CPU backend does.
      logit -=
          __fmul_rn(row.frequency_penalty, static_cast<float>(seen.generated));
    }
    x[at] = logit;
  }
  __syncthreads();
  for (int i = first; i < row.num_bias; i += kSampleThreads) {
    const DeviceTokenBias bias = args.bias[row.bias + i];
    if (in_slice(bias.token - begin)) x[bias.token - begin] += bias.bias;
  }
  __syncthreads();
  for (int i = first; i < row.num_banned; i += kSampleThreads) {
    const int at = args.tokens[row.banned + i] - begin;
    if (in_slice(at)) x[at] = -__builtin_huge_valf();
  }
  if (row.num_allowed > 0) {
    for (int i = first; i < count; i += kSampleThreads) allowed[i] = 0;
    __syncthreads();
    for (int i = first; i < row.num_allowed; i += kSampleThreads) {
      const int at = args.tokens[row.allowed + i] - begin;
      if (in_slice(at)) allowed[at] = 1;
    }
    __syncthreads();
    for (int i = first; i < count; i += kSampleThreads) {
      if (allowed[i] == 0) x[i] = -__builtin_huge_valf();
    }
  }
  __syncthreads();
}

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_SAMPLE_LOGITS_CUH_
