#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/sample_choose.cuh"
#include "kernels/cuda/sample_scratch.cuh"

// Four kernels; rows that do not need one leave it at once.
//
//   SliceKernel   [slices, rows]  all: the best logit of each slice, raw and
//                                 processed, and what log-probabilities need
//   MassKernel    [slices, rows]  rows that draw: the slice's sum of weights;
//   of
//                                 rows with top_k, top_p or min_p how many
//                                 tokens lie how deep below the best one
//   CollectKernel [slices, rows]  these: tokens so deep that all which are kept
//                                 are among them
//   ChooseKernel  [rows]          the token, from all, from these, or where
//   they
//                                 are too many, by searching the row
//
// Weights are rounded to multiples of 2^-43 and added as integers.  So no sum
// depends on an order, and a row's token is a function of its logits and its
// SampleRow alone.
namespace strata::cuda {
namespace {

static_assert(kDepthBins <= kSampleThreads);

struct Slice {
  int begin;
  int count;

  __device__ explicit Slice(int vocab)
      : begin(blockIdx.x * kSliceTokens),
        count(min(kSliceTokens, vocab - begin)) {}
};

__device__ int TopCount(const DeviceSampleRow& row) {
  return min(row.num_top, kMaxTopLogprobs);
}

__global__ void __launch_bounds__(kSampleThreads)
    SliceKernel(SampleArgs args, SampleScratch scratch) {
  __shared__ float x[kSliceTokens];
  __shared__ uint8_t allowed[kSliceTokens];
  GriddepWait();
  GriddepLaunch();
  const SampleTask task(args, scratch, blockIdx.y);
  const DeviceSampleRow& row = task.row;
  const Slice slice(task.vocab);
  const auto rank = [&](int i) { return RankOf(x[i], slice.begin + i); };

  uint64_t best = 0;
  ForEachInSlice(task.raw + slice.begin, slice.count, [&](int i, float logit) {
    x[i] = logit;
    best = max(best, rank(i));
  });
  best = BlockReduce(best, Larger());
  SliceStats stats = {best, best, 0.0};
  if (row.wants_logprobs != 0) {
    const float max = LogitOf(best);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < slice.count; i += kSampleThreads) {
      if (max > -__builtin_huge_valf()) sum += expf(x[i] - max);
    }
    stats.raw_sum = BlockReduce(double{sum}, Sum());
    Largest(slice.count, rank, TopCount(row),
            task.top + int64_t{blockIdx.x} * kMaxTopLogprobs);
  }
  if (ChangesLogits(row)) {
    ProcessSlice(args, row, slice.begin, slice.count, x, allowed);
    best = 0;
    for (int i = threadIdx.x; i < slice.count; i += kSampleThreads) {
      task.processed[slice.begin + i] = x[i];
      best = max(best, rank(i));
    }
    stats.best = BlockReduce(best, Larger());
  }
  if (threadIdx.x == 0) task.stats[blockIdx.x] = stats;
  if (blockIdx.x == 0) {
    if (threadIdx.x < kDepthBins) task.depths[threadIdx.x] = 0;
    if (threadIdx.x == 0) *task.candidate_count = {0, 0};
  }
}

// The bin of a token; kDepthBins: below all of them.
__device__ int DepthBin(const Weights& weights, float logit) {
  const float depth = weights.Depth(logit) * kBinsPerUnit;
  return depth < kDepthBins ? static_cast<int>(depth) : kDepthBins;
}

__global__ void __launch_bounds__(kSampleThreads)
    MassKernel(SampleArgs args, SampleScratch scratch) {
  __shared__ uint32_t depths[kDepthBins];
  GriddepWait();
  GriddepLaunch();
  const SampleTask task(args, scratch, blockIdx.y);
  const DeviceSampleRow& row = task.row;
  if (!Draws(row)) return;
  const float max = LogitOf(BestOfRow(task, &SliceStats::best));
  if (!IsFinite(max)) return;
  const Weights weights(max, row);
  const Slice slice(task.vocab);
  const float* x = task.logits() + slice.begin;
  const bool filters = Filters(row, task.vocab);

  if (threadIdx.x < kDepthBins) depths[threadIdx.x] = 0;
  __syncthreads();
  Mass mass = 0;
  ForEachInSlice(x, slice.count, [&](int, float logit) {
    mass += weights.MassOf(logit);
    if (!filters) return;
    const int bin = DepthBin(weights, logit);
    if (bin < kDepthBins) atomicAdd(&depths[bin], 1);
  });
  mass = BlockReduce(mass, Sum());
  if (threadIdx.x == 0) task.masses[blockIdx.x] = mass;
  if (filters && threadIdx.x < kDepthBins && depths[threadIdx.x] != 0)
    atomicAdd(&task.depths[threadIdx.x], depths[threadIdx.x]);
}

// The last bin that may have tokens which are kept.  `mass`: of the row.
__device__ int LastBin(const DeviceSampleRow& row, int vocab,
                       const uint32_t* depths, Mass mass) {
  int last = kDepthBins - 1;
  if (HasTopK(row, vocab)) {
    uint32_t count = 0;
    for (int b = last; b >= 0; --b) count += depths[b];
    // Without the last bin, top_k are still there.
    const uint32_t top_k = row.top_k;
    while (last > 0 && count - depths[last] >= top_k) count -= depths[last--];
    if (row.top_p < 1.0f) return last;  // of the mass of top_k
  } else if (row.top_p < 1.0f) {
    // The weights of a bin are at most that of its start.  Room for rounding.
    const float room =
        (1.0f - row.top_p) * (static_cast<float>(mass) * 0x1p-43f) * 0.99f;
    float dropped = 0.0f;
    for (; last > 0; --last) {
      dropped += depths[last] * expf(-last / kBinsPerUnit);
      if (dropped > room) break;
    }
  }
  if (row.min_p > 0.0f) {
    const float depth = -logf(row.min_p) * kBinsPerUnit + 0.01f;
    if (depth < last) last = static_cast<int>(depth);
  }
  return last;
}

__global__ void __launch_bounds__(kSampleThreads)
    CollectKernel(SampleArgs args, SampleScratch scratch) {
  __shared__ uint32_t depths[kDepthBins];
  __shared__ int last_bin;
  __shared__ uint32_t wanted;
  GriddepWait();
  GriddepLaunch();
  const SampleTask task(args, scratch, blockIdx.y);
  const DeviceSampleRow& row = task.row;
  if (!Filters(row, task.vocab)) return;
  const float max = LogitOf(BestOfRow(task, &SliceStats::best));
  if (!IsFinite(max)) return;
  const Mass mass = row.top_p < 1.0f ? MassOfRow(task) : 0;
  const Weights weights(max, row);
  const Slice slice(task.vocab);
  const float* x = task.logits() + slice.begin;

  if (threadIdx.x < kDepthBins) depths[threadIdx.x] = task.depths[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    last_bin = LastBin(row, task.vocab, depths, mass);
    wanted = 0;
    for (int b = 0; b <= last_bin; ++b) wanted += depths[b];
    if (blockIdx.x == 0) task.candidate_count->wanted = wanted;
  }
  __syncthreads();
  if (wanted > kMaxCandidates) return;
  ForEachInSlice(x, slice.count, [&](int i, float logit) {
    if (DepthBin(weights, logit) > last_bin) return;
    const uint32_t at = atomicAdd(&task.candidate_count->found, 1);
    task.candidates[at] = RankOf(logit, slice.begin + i);
  });
}

// `best`: the row's best rank.
__device__ int ChooseToken(const SampleTask& task, uint64_t best,
                           ChooseMemory& memory) {
  const DeviceSampleRow& row = task.row;
  if (row.forced_token >= 0) return row.forced_token;
  if (!Draws(row)) return TokenOf(best);
  const Weights weights(LogitOf(best), row);
  if (!Filters(row, task.vocab)) return DrawFromAll(task, weights, memory);
  const uint32_t count = task.candidate_count->wanted;
  return count <= kMaxCandidates
             ? DrawFromCandidates(task, weights, count, memory.ranks)
             : DrawFromMany(task, weights, memory);
}

// Log-probabilities of the raw logits.
__device__ void AddLogprobs(const SampleTask& task, float max, int token,
                            DeviceSampledToken& out) {
  __shared__ uint64_t top[kMaxTopLogprobs];
  double own = 0.0;
  for (int s = threadIdx.x % 32; s < task.slices; s += 32) {
    const SliceStats& stats = task.stats[s];
    own += stats.raw_sum * exp(double{LogitOf(stats.raw_best)} - max);
  }
  const double log_sum = log(WarpReduce(own, Sum()));
  const auto logprob = [&](float logit) {
    return static_cast<float>(double{logit} - max - log_sum);
  };
  const int num_top = TopCount(task.row);
  Largest(
      task.slices * num_top,
      [&](int i) {
        return task.top[i / num_top * kMaxTopLogprobs + i % num_top];
      },
      num_top, top);
  const int there = min(num_top, task.vocab);
  if (static_cast<int>(threadIdx.x) < there) {
    out.top_tokens[threadIdx.x] = TokenOf(top[threadIdx.x]);
    out.top_logprobs[threadIdx.x] = logprob(LogitOf(top[threadIdx.x]));
  }
  if (threadIdx.x == 0) {
    out.logprob = logprob(task.raw[token]);
    out.num_top = there;
  }
}

__global__ void __launch_bounds__(kSampleThreads)
    ChooseKernel(SampleArgs args, SampleScratch scratch) {
  __shared__ ChooseMemory memory;
  GriddepWait();
  GriddepLaunch();
  const SampleTask task(args, scratch, blockIdx.x);
  DeviceSampledToken& out = args.out[blockIdx.x];
  const float raw_max = LogitOf(BestOfRow(task, &SliceStats::raw_best));
  const uint64_t best = BestOfRow(task, &SliceStats::best);
  const bool finite = IsFinite(raw_max) && IsFinite(LogitOf(best));
  const int token = finite ? ChooseToken(task, best, memory) : 0;
  if (threadIdx.x == 0) {
    out.token = token;
    out.logprob = 0.0f;
    out.num_top = 0;
    out.finite = finite;
  }
  if (finite && task.row.wants_logprobs != 0) {
    __syncthreads();
    AddLogprobs(task, raw_max, token, out);
  }
}

}  // namespace

cudaError_t Sample(const SampleArgs& args, cudaStream_t stream) {
  const SampleScratch scratch(args.scratch, args.rows, args.vocab);
  if (args.rows == 0) return cudaSuccess;  // a grid of 0 blocks is an error
  if (scratch.slices > kMaxSlices) return cudaErrorInvalidValue;
  const dim3 slices(scratch.slices, args.rows);
  const auto config = [&](dim3 grid) {
    return LaunchConfig{.grid = grid,
                        .block = dim3(kSampleThreads),
                        .stream = stream,
                        .overlap = true};
  };
  cudaError_t error = Launch<SliceKernel>(config(slices), args, scratch);
  if (error == cudaSuccess)
    error = Launch<MassKernel>(config(slices), args, scratch);
  if (error == cudaSuccess)
    error = Launch<CollectKernel>(config(slices), args, scratch);
  if (error == cudaSuccess)
    error = Launch<ChooseKernel>(config(dim3(args.rows)), args, scratch);
  return error;
}

int64_t SampleScratchBytes(int rows, int vocab) {
  return SampleScratch(nullptr, rows, vocab).num_bytes;
}

}  // namespace strata::cuda
