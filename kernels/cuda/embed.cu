#include <cstdint>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/weights.cuh"

namespace strata::cuda {
namespace {

constexpr int kThreads = 128;

// One block a row; a thread takes a chunk of 16 bytes.
template <DType kType>
__global__ void __launch_bounds__(kThreads) EmbedKernel(EmbedArgs args) {
  GriddepWait();
  const int row = blockIdx.x, sampled = args.sampled[row];
  const int token =
      sampled < 0 ? args.tokens[row] : args.results[sampled].token;
  float4* x =
      reinterpret_cast<float4*>(args.x + int64_t{row} * args.table.cols);
  if (token < 0) {
    for (int c = threadIdx.x; c < args.table.cols / 4; c += kThreads) {
      x[c] = {0.0f, 0.0f, 0.0f, 0.0f};
    }
    return;
  }
  constexpr int kGroups = kChunkWeights<kType> / 8;
  const uint4* weights = RowChunks<kType>(args.table, token);
  const F16* scales = RowScales<kType>(args.table, token);
  const int chunks = args.table.cols / kChunkWeights<kType>;
  for (int c = threadIdx.x; c < chunks; c += kThreads) {
    const uint4 chunk = weights[c];
    const float d = ChunkScale<kType>(scales, c);
    for (int group = 0; group < kGroups; ++group) {
      float v[8];
      UnpackWeights<kType>(chunk, group, v);
      float4* at = x + (c * kGroups + group) * 2;
      at[0] = {d * v[0], d * v[1], d * v[2], d * v[3]};
      at[1] = {d * v[4], d * v[5], d * v[6], d * v[7]};
    }
  }
}

__global__ void __launch_bounds__(kThreads) GatherKernel(GatherArgs args) {
  GriddepWait();
  const int row = blockIdx.x, id = args.row_ids[row];
  const int chunks = args.dim / 4;
  const float4* x =
      reinterpret_cast<const float4*>(args.x) + int64_t{id} * chunks;
  float4* y = reinterpret_cast<float4*>(args.y) + int64_t{row} * chunks;
  for (int c = threadIdx.x; c < chunks; c += kThreads) {
    y[c] = id < 0 ? float4{0.0f, 0.0f, 0.0f, 0.0f} : x[c];
  }
}

// Columns of a block.
constexpr int kClearCols = 16 * kThreads;

__global__ void __launch_bounds__(kThreads) ClearKernel(ClearArgs args) {
  GriddepWait();
  float* y = args.y + int64_t{blockIdx.y} * args.cols;
  const int first = blockIdx.x * kClearCols;
  const int last = min(first + kClearCols, args.cols);
  for (int c = first + threadIdx.x; c < last; c += kThreads) {
    if (c < args.begin || c >= args.end) y[c] = 0.0f;
  }
}

LaunchConfig OneBlockARow(int rows, cudaStream_t stream) {
  return {.grid = dim3(rows),
          .block = dim3(kThreads),
          .stream = stream,
          .overlap = true};
}

}  // namespace

cudaError_t Embed(const EmbedArgs& args, cudaStream_t stream) {
  if (args.rows == 0) return cudaSuccess;  // a grid of 0 blocks is an error
  const LaunchConfig config = OneBlockARow(args.rows, stream);
  switch (args.table.type) {
    case DType::kBF16:
      return Launch<EmbedKernel<DType::kBF16>>(config, args);
    case DType::kQ8_0:
      return Launch<EmbedKernel<DType::kQ8_0>>(config, args);
    case DType::kQ4_0:
      return Launch<EmbedKernel<DType::kQ4_0>>(config, args);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t Gather(const GatherArgs& args, cudaStream_t stream) {
  if (args.rows == 0) return cudaSuccess;
  return Launch<GatherKernel>(OneBlockARow(args.rows, stream), args);
}

cudaError_t Clear(const ClearArgs& args, cudaStream_t stream) {
  if (args.rows == 0) return cudaSuccess;
  LaunchConfig config = OneBlockARow(args.rows, stream);
  config.grid = dim3((args.cols + kClearCols - 1) / kClearCols, args.rows);
  return Launch<ClearKernel>(config, args);
}

}  // namespace strata::cuda
