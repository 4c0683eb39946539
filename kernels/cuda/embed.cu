#include <cstdint>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/weights.cuh"

namespace strata::cuda {
namespace {

constexpr int kThreads = 128;

// One block a row; a thread takes a chunk of 16 bytes.
template <WeightFormat kFormat>
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
  constexpr int kGroups = kChunkWeights<kFormat> / 8;
  const uint4* weights = RowChunks<kFormat>(args.table, token);
  const F16* scales = BlockScales<kFormat>(args.table, token);
  const float row_scale = RowScale<kFormat>(args.table, token);
  const int chunks = args.table.cols / kChunkWeights<kFormat>;
  for (int c = threadIdx.x; c < chunks; c += kThreads) {
    const uint4 chunk = weights[c];
    const float d = row_scale * ChunkScale<kFormat>(scales, c);
    for (int group = 0; group < kGroups; ++group) {
      float v[8];
      UnpackWeights<kFormat>(chunk, group, v);
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
  switch (args.table.format) {
    case WeightFormat::kBf16:
      return Launch<EmbedKernel<WeightFormat::kBf16>>(config, args);
    case WeightFormat::kQ8_0:
      return Launch<EmbedKernel<WeightFormat::kQ8_0>>(config, args);
    case WeightFormat::kQ4_0:
      return Launch<EmbedKernel<WeightFormat::kQ4_0>>(config, args);
    case WeightFormat::kFp8:
      return Launch<EmbedKernel<WeightFormat::kFp8>>(config, args);
  }
  return cudaErrorInvalidValue;
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
