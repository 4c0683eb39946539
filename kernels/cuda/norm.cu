#include <cstdint>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/weights.cuh"

namespace strata::cuda {
namespace {

constexpr int kThreads = 256;

// One block a row, in chunks of 8 columns.
__global__ void __launch_bounds__(kThreads) NormKernel(NormArgs args) {
  GriddepWait();
  const int row = blockIdx.x;
  const int id = args.row_ids == nullptr ? row : args.row_ids[row];
  const int chunks = args.dim / 8;
  uint4* y = reinterpret_cast<uint4*>(args.y) + int64_t{row} * chunks;
  if (id < 0) {
    for (int c = threadIdx.x; c < chunks; c += kThreads) y[c] = {0, 0, 0, 0};
    return;
  }
  const float* x = args.x + int64_t{id} * args.dim;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < chunks * 2; c += kThreads) {
    sum += SquareSum(reinterpret_cast<const float4*>(x)[c]);
  }
  const float scale = rsqrtf(BlockSum<kThreads>(sum) / args.dim + args.eps);
  GriddepLaunch();
  for (int c = threadIdx.x; c < chunks; c += kThreads) {
    y[c] = NormalizedChunk(x + 8 * c, args.weight + 8 * c, scale);
  }
}

}  // namespace

cudaError_t Norm(const NormArgs& args, cudaStream_t stream) {
  if (args.rows == 0) return cudaSuccess;  // a grid of 0 blocks is an error
  return Launch<NormKernel>({.grid = dim3(args.rows),
                             .block = dim3(kThreads),
                             .stream = stream,
                             .overlap = true},
                            args);
}

}  // namespace strata::cuda
