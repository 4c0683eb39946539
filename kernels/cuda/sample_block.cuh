#ifndef KERNELS_CUDA_SAMPLE_BLOCK_CUH_
#define KERNELS_CUDA_SAMPLE_BLOCK_CUH_

#include <cuda_runtime.h>

#include <cstdint>

// What the threads of a sampling block do together.  Every thread of the block
// calls these functions, with the same arguments where not said otherwise, and
// gets the same result.  They end with the block's earlier writes visible.
namespace strata::cuda {

inline constexpr int kSampleThreads = 256;
inline constexpr int kSampleWarps = kSampleThreads / 32;

// A sum of weights, each a multiple of 2^-43: exact in every order.
using Mass = unsigned long long;

struct Larger {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

// Of the warp's values.
template <typename T, typename Op>
__device__ T WarpReduce(T v, Op op) {
  for (int d = 16; d > 0; d /= 2) {
    v = op(v, __shfl_xor_sync(0xffffffffu, v, d));
  }
  return v;
}

// Of the block's values, in a fixed order.
template <typename T, typename Op>
__device__ T BlockReduce(T v, Op op) {
  __shared__ T warp_values[kSampleWarps];
  v = WarpReduce(v, op);
  __syncthreads();  // the last call's have been read
  if (threadIdx.x % 32 == 0) warp_values[threadIdx.x / 32] = v;
  __syncthreads();
  T total = warp_values[0];
  for (int w = 1; w < kSampleWarps; ++w) total = op(total, warp_values[w]);
  return total;
}

struct Reached {
  int index;
  Mass before;  // the sum of the elements before index
};

// The first of n elements up to which mass(i) sums to `target` or more; index n
// if none.  REQUIRES: target > 0.
template <typename MassOfElement>
__device__ Reached FirstReaching(int n, MassOfElement mass, Mass target) {
  __shared__ Reached reached;
  __shared__ Mass warp_sums[kSampleWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int share = (n + kSampleThreads - 1) / kSampleThreads;
  const int begin = min(static_cast<int>(threadIdx.x) * share, n);
  const int end = min(begin + share, n);
  __syncthreads();  // the last call's have been read; mass may read what is new
  Mass own = 0;
  for (int i = begin; i < end; ++i) own += mass(i);
  Mass sum = own;  // of the threads up to this one
  for (int d = 1; d < 32; d *= 2) {
    const Mass left = __shfl_up_sync(0xffffffffu, sum, d);
    if (lane >= d) sum += left;
  }
  if (lane == 31) warp_sums[warp] = sum;
  if (threadIdx.x == 0) reached = {n, 0};
  __syncthreads();
  for (int w = 0; w < warp; ++w) sum += warp_sums[w];
  Mass before = sum - own;
  if (before < target && sum >= target) {
    int i = begin;
    for (Mass m = mass(i); before + m < target; m = mass(i)) {
      before += m;
      ++i;
    }
    reached = {i, before};
  }
  __syncthreads();
  return reached;
}

// Writes the k largest of n distinct numbers, the largest first; 0 for those
// that are not there.  REQUIRES: rank(i) > 0.
template <typename RankOfElement>
__device__ void Largest(int n, RankOfElement rank, int k, uint64_t* out) {
  uint64_t below = ~uint64_t{0};
  uint64_t own = 0;  // the thread's largest below the last one found
  const auto find = [&] {
    own = 0;
    for (int i = threadIdx.x; i < n; i += kSampleThreads) {
      const uint64_t r = rank(i);
      if (r < below && r > own) own = r;
    }
  };
  find();
  for (int j = 0; j < k; ++j) {
    const uint64_t best = BlockReduce(own, Larger());
    if (threadIdx.x == 0) out[j] = best;
    below = best;
    if (own == best) find();
  }
  __syncthreads();
}

// Sorts, the largest first.  REQUIRES: room for the next power of two.
__device__ inline void SortFalling(uint64_t* v, int n) {
  int size = 1;
  while (size < n) size *= 2;
  for (int i = n + threadIdx.x; i < size; i += kSampleThreads) v[i] = 0;
  __syncthreads();
  // Bitonic: runs of `length` that fall and rise by turns are merged.  Up to a
  // distance of 32 a warp's pairs are all of the same 64 elements.
  for (int length = 2; length <= size; length *= 2) {
    for (int d = length / 2; d > 0; d /= 2) {
      if (d >= 32) {
        __syncthreads();
      } else {
        __syncwarp();
      }
      for (int p = threadIdx.x; p < size / 2; p += kSampleThreads) {
        const int i = 2 * p - (p & (d - 1));
        const bool falls = (i & length) == 0;
        const uint64_t a = v[i], b = v[i + d];
        if ((a < b) == falls) {
          v[i] = b;
          v[i + d] = a;
        }
      }
    }
  }
  __syncthreads();
}

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_SAMPLE_BLOCK_CUH_
