#ifndef KERNELS_CUDA_SAMPLE_SCRATCH_CUH_
#define KERNELS_CUDA_SAMPLE_SCRATCH_CUH_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/sample_logits.cuh"
#include "kernels/sampling.h"

// What the kernels of Sample leave for one another.
namespace strata::cuda {

// The best tokens among which a choice is made by sorting them; where more may
// be kept, the whole row is searched.
inline constexpr int kMaxCandidates = 4096;

// Tokens are counted by the depth of their logit, in bins this wide.  The
// weights of those past the last bin are less than 2^-43, hence 0.
inline constexpr int kDepthBins = 128;
inline constexpr float kBinsPerUnit = 4.0f;

struct SliceStats {
  uint64_t raw_best;  // rank of the best raw logit
  uint64_t best;      // after processing
  double raw_sum;     // of e^(raw logit - the slice's largest), where log-
                      // probabilities are wanted
};

struct CandidateCount {
  uint32_t found;   // so far
  uint32_t wanted;  // in all; more than kMaxCandidates: none are collected
};

struct SampleScratch {
  int slices;
  SliceStats* stats;                 // [rows, slices]
  Mass* masses;                      // [rows, slices]
  uint32_t* depths;                  // [rows, kDepthBins], tokens
  CandidateCount* candidate_counts;  // [rows]
  uint64_t* candidates;              // [rows, kMaxCandidates], ranks
  uint64_t* top;                     // [rows, slices, kMaxTopLogprobs], ranks
  float* processed;                  // [rows, vocab], of rows that change
  int64_t num_bytes;

  SampleScratch(void* memory, int rows, int vocab)
      : slices((vocab + kSliceTokens - 1) / kSliceTokens), num_bytes(0) {
    const auto take = [&]<typename T>(T*& array, int64_t count) {
      array = reinterpret_cast<T*>(static_cast<std::byte*>(memory) + num_bytes);
      num_bytes += (count * int64_t{sizeof(T)} + 255) / 256 * 256;
    };
    const int64_t all_slices = int64_t{rows} * slices;
    take(stats, all_slices);
    take(masses, all_slices);
    take(depths, int64_t{rows} * kDepthBins);
    take(candidate_counts, rows);
    take(candidates, int64_t{rows} * kMaxCandidates);
    take(top, all_slices * kMaxTopLogprobs);
    take(processed, int64_t{rows} * vocab);
  }
};

// One row, as its blocks see it.
struct SampleTask {
  const DeviceSampleRow& row;
  int vocab;
  int slices;
  const float* raw;  // [vocab]
  float* processed;  // [vocab]
  SliceStats* stats;
  Mass* masses;
  uint32_t* depths;
  CandidateCount* candidate_count;
  uint64_t* candidates;
  uint64_t* top;

  __device__ SampleTask(const SampleArgs& args, const SampleScratch& scratch,
                        int64_t r)
      : row(args.samples[r]),
        vocab(args.vocab),
        slices(scratch.slices),
        raw(args.logits + r * args.vocab),
        processed(scratch.processed + r * args.vocab),
        stats(scratch.stats + r * slices),
        masses(scratch.masses + r * slices),
        depths(scratch.depths + r * kDepthBins),
        candidate_count(scratch.candidate_counts + r),
        candidates(scratch.candidates + r * kMaxCandidates),
        top(scratch.top + r * slices * kMaxTopLogprobs) {}

  // [vocab], what the token is chosen by.
  __device__ const float* logits() const {
    return ChangesLogits(row) ? processed : raw;
  }
};

// The best of the slices' ranks, raw or processed.
// REQUIRES: the whole warp calls it.
__device__ inline uint64_t BestOfRow(const SampleTask& task,
                                     uint64_t SliceStats::*rank) {
  uint64_t best = 0;
  for (int s = threadIdx.x % 32; s < task.slices; s += 32)
    best = max(best, task.stats[s].*rank);
  return WarpReduce(best, Larger());
}

// The sum of the weights of all tokens.  REQUIRES: the whole warp calls it.
__device__ inline Mass MassOfRow(const SampleTask& task) {
  Mass mass = 0;
  for (int s = threadIdx.x % 32; s < task.slices; s += 32)
    mass += task.masses[s];
  return WarpReduce(mass, Sum());
}

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_SAMPLE_SCRATCH_CUH_
