#include <algorithm>
#include <cstdint>
#include <iterator>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product.cuh"
#include "kernels/cuda/product_kernels.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/weights.cuh"

// Few rows: every weight is read once, so the memory's speed is the limit.  The
// block keeps its input in shared memory as bf16; a warp computes two outputs
// for all rows at a time, each lane over every 32nd chunk of 16 bytes of both
// weight rows.  Blocks stay for as many pairs of outputs as there are.  The
// order of a sum depends on cols alone.
namespace strata::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kUnroll =
    4;  // chunks of each weight row that a lane loads at once
// As many as find registers for that, without spills.
template <WeightFormat kFormat, int kRows>
constexpr int kBlocksPerSm = (kFormat == WeightFormat::kBf16 && kRows <= 2) ||
                                     (kFormat == WeightFormat::kFp8 &&
                                      kRows == 1)
                                 ? 3
                                 : 2;
constexpr unsigned kAllLanes = 0xffffffffu;

// Where a row of the input keeps a chunk of 8 numbers: lanes that read every
// second or fourth one, as quantised weights make them, find different banks.
// That reorders four chunks at a time, so a row has room for a multiple.
__device__ int ChunkAt(int chunk) { return chunk ^ (chunk / 8 % 4); }
__host__ __device__ int RowChunksOfInput(int cols) {
  return DivideUp(cols, 32) * 4;
}

// The sums of `sum` over the block, in a fixed order.  REQUIRES: called once.
template <int kRows>
__device__ void BlockSums(float (&sum)[kRows]) {
  __shared__ float warp_sum[kWarps][kRows];
  for (int r = 0; r < kRows; ++r) {
    for (int d = 16; d > 0; d /= 2) {
      sum[r] += __shfl_xor_sync(kAllLanes, sum[r], d);
    }
    if (threadIdx.x % 32 == 0) warp_sum[threadIdx.x / 32][r] = sum[r];
  }
  __syncthreads();
  for (int r = 0; r < kRows; ++r) {
    sum[r] = 0.0f;
    for (int w = 0; w < kWarps; ++w) sum[r] += warp_sum[w][r];
  }
}

// norm(u) of the wanted rows to `x`.
template <int kRows>
__device__ void StageNorm(const ProductArgs& args, uint4* x) {
  const int cols = args.w[0].cols, x_chunks = RowChunksOfInput(cols);
  const float* u[kRows];
  bool zero[kRows];
  float sum[kRows] = {};
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int id = args.row_ids == nullptr ? r : args.row_ids[r];
    zero[r] = id < 0;
    u[r] = args.u + int64_t{max(id, 0)} * cols;
  }
  for (int c = threadIdx.x; c < cols / 4; c += kThreads) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (zero[r]) continue;
      sum[r] += SquareSum(reinterpret_cast<const float4*>(u[r])[c]);
    }
  }
  BlockSums(sum);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float scale = rsqrtf(sum[r] / cols + args.eps);
    for (int c = threadIdx.x; c < cols / 8; c += kThreads) {
      x[r * x_chunks + ChunkAt(c)] =
          zero[r] ? uint4{0, 0, 0, 0}
                  : NormalizedChunk(u[r] + 8 * c, args.norm + 8 * c, scale);
    }
  }
}

template <int kRows>
__device__ void StageInput(const ProductArgs& args, uint4* x) {
  if (args.x == nullptr) {
    StageNorm<kRows>(args, x);
    return;
  }
  const int chunks = args.w[0].cols / 8;
  const int x_chunks = RowChunksOfInput(args.w[0].cols);
  for (int i = threadIdx.x; i < kRows * chunks; i += kThreads) {
    x[i / chunks * x_chunks + ChunkAt(i % chunks)] =
        reinterpret_cast<const uint4*>(args.x)[i];
  }
}

__device__ uint4 LoadChunk(const uint4* at) {
  const float4 v = LoadEvictFirst(reinterpret_cast<const float4*>(at));
  return {__float_as_uint(v.x), __float_as_uint(v.y), __float_as_uint(v.z),
          __float_as_uint(v.w)};
}

// sum[o][r] += weights[o] . x[r] over one chunk of each of two weight rows.
template <WeightFormat kFormat, int kRows>
__device__ void AddChunk(const uint4 (&weights)[2], const float (&scale)[2],
                         const uint4* x, int x_chunks, int chunk,
                         float (&sum)[2][kRows]) {
  constexpr int kGroups = kChunkWeights<kFormat> / 8;
  float part[2][kRows] = {};
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    float w[2][8];
    UnpackWeights<kFormat>(weights[0], group, w[0]);
    UnpackWeights<kFormat>(weights[1], group, w[1]);
    const uint4* at = x + ChunkAt(chunk * kGroups + group);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float v[8];
      UnpackWeights<WeightFormat::kBf16>(at[r * x_chunks], 0, v);
      for (int i = 0; i < 8; ++i) {
        part[0][r] += w[0][i] * v[i];
        part[1][r] += w[1][i] * v[i];
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    sum[0][r] += scale[0] * part[0][r];
    sum[1][r] += scale[1] * part[1][r];
  }
}

// The products of weight rows a and b with the rows of x, in every lane.
template <WeightFormat kFormat, int kRows>
__device__ void MultiplyPair(const ProductArgs& args, const Output& a,
                             const Output& b, const uint4* x,
                             float (&sum)[2][kRows]) {
  const DeviceMatrix &wa = args.w[a.matrix], &wb = args.w[b.matrix];
  const uint4* rows[2] = {RowChunks<kFormat>(wa, a.index),
                          RowChunks<kFormat>(wb, b.index)};
  const F16* scales[2] = {BlockScales<kFormat>(wa, a.index),
                          BlockScales<kFormat>(wb, b.index)};
  const int chunks = wa.cols / kChunkWeights<kFormat>;
  const int x_chunks = RowChunksOfInput(wa.cols);
  for (int c = threadIdx.x % 32; c < chunks; c += 32 * kUnroll) {
    uint4 weights[kUnroll][2];
    float scale[kUnroll][2];
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) {  // all loads are under way at once
      const int chunk = min(c + 32 * j, chunks - 1);
      for (int o = 0; o < 2; ++o) {
        weights[j][o] = LoadChunk(rows[o] + chunk);
        scale[j][o] = ChunkScale<kFormat>(scales[o], chunk);
      }
    }
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) {
      if (c + 32 * j < chunks) {
        AddChunk<kFormat>(weights[j], scale[j], x, x_chunks, c + 32 * j, sum);
      }
    }
  }
#pragma unroll
  for (int o = 0; o < 2; ++o) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      for (int d = 16; d > 0; d /= 2) {
        sum[o][r] += __shfl_xor_sync(kAllLanes, sum[o][r], d);
      }
    }
  }
}

// The outputs of pair `pair`: an odd matrix's last pair has its end twice.
struct Pair {
  Output a;
  Output b;
  bool is_single;
};
__device__ Pair PairAt(const ProductArgs& args, int pair) {
  const Tile tile = TileAt<2>(args, pair);
  Pair out = {OutputAt<1>(args, tile, 0), OutputAt<1>(args, tile, 1), false};
  out.is_single = out.b.index >= args.w[out.b.matrix].rows;
  if (out.is_single) out.b.index = out.a.index;
  return out;
}

template <WeightFormat kFormat, int kRows>
__device__ void ComputePair(const ProductArgs& args, const Pair& pair,
                            const uint4* x) {
  // Loaded before what they wait for.
  const float a_scale = RowScale<kFormat>(args.w[pair.a.matrix], pair.a.index);
  const float b_scale = RowScale<kFormat>(args.w[pair.b.matrix], pair.b.index);
  float sum[2][kRows] = {};
  MultiplyPair<kFormat>(args, pair.a, pair.b, x, sum);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (int(threadIdx.x % 32) != r) continue;
    if (args.then == ProductArgs::Then::kSwiGlu) {
      StoreSwiGlu(args, r, pair.a.index, a_scale * sum[0][r],
                  b_scale * sum[1][r]);
    } else {
      StoreOutput(args, r, pair.a, a_scale * sum[0][r]);
      if (!pair.is_single) StoreOutput(args, r, pair.b, b_scale * sum[1][r]);
    }
  }
}

// Asks for the first 4 KB of a weight row while earlier kernels still run.
template <WeightFormat kFormat>
__device__ void PrefetchRow(const DeviceMatrix& w, int row) {
  const int chunk = threadIdx.x % 32 * 8;
  if (w.format != kFormat || chunk * kChunkWeights<kFormat> >= w.cols) return;
  PrefetchL2(RowChunks<kFormat>(w, row) + chunk);
}

// Computes the matrices of kFormat; each block may look at all pairs.
template <WeightFormat kFormat, int kRows>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm<kFormat, kRows>)
    GemvKernel(ProductArgs args) {
  uint4* x = &DynamicShared<uint4>();  // [kRows][RowChunksOfInput(cols)]
  const int warp = blockIdx.x * kWarps + threadIdx.x / 32;
  int pairs = NumTiles<2>(args);
  if (warp < pairs) {
    const Pair first = PairAt(args, warp);
    if (AlwaysComputed(args, first.a.matrix)) {
      PrefetchRow<kFormat>(args.w[first.a.matrix], first.a.index);
      PrefetchRow<kFormat>(args.w[first.b.matrix], first.b.index);
    }
  }
  GriddepWait();
  if (args.any != nullptr && args.any[0] == 0) {
    pairs = DivideUp(args.w[0].rows, 2);
  }
  StageInput<kRows>(args, x);
  __syncthreads();
  GriddepLaunch();  // the next kernel fetches its weights as blocks here end
  for (int i = warp; i < pairs; i += gridDim.x * kWarps) {
    const Pair pair = PairAt(args, i);
    if (args.w[pair.a.matrix].format == kFormat) {
      ComputePair<kFormat, kRows>(args, pair, x);
    }
  }
}

template <WeightFormat kFormat, int kRows>
cudaError_t LaunchRows(const ProductArgs& args, cudaStream_t stream) {
  int sms = 0;
  const cudaError_t error = CountSms(&sms);
  if (error != cudaSuccess) return error;
  const int blocks = std::min(DivideUp(NumTiles<2>(args), kWarps),
                              sms * kBlocksPerSm<kFormat, kRows>);
  return Launch<GemvKernel<kFormat, kRows>>(
      {.grid = dim3(blocks),
       .block = dim3(kThreads),
       .smem_bytes = sizeof(uint4) * kRows * RowChunksOfInput(args.w[0].cols),
       .stream = stream,
       .overlap = true},
      args);
}

// A launch for the matrices of kFormat, if there are any.
template <WeightFormat kFormat>
cudaError_t LaunchFormat(const ProductArgs& args, cudaStream_t stream) {
  if (std::none_of(std::begin(args.w), std::end(args.w),
                   [](const DeviceMatrix& w) {
                     return w.rows > 0 && w.format == kFormat;
                   })) {
    return cudaSuccess;
  }
  switch (args.rows) {
    case 1:
      return LaunchRows<kFormat, 1>(args, stream);
    case 2:
      return LaunchRows<kFormat, 2>(args, stream);
    case 3:
      return LaunchRows<kFormat, 3>(args, stream);
    case 4:
      return LaunchRows<kFormat, 4>(args, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t Gemv(const ProductArgs& args, cudaStream_t stream) {
  for (const auto launch :
       {LaunchFormat<WeightFormat::kBf16>, LaunchFormat<WeightFormat::kQ8_0>,
        LaunchFormat<WeightFormat::kQ4_0>, LaunchFormat<WeightFormat::kFp8>}) {
    const cudaError_t error = launch(args, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace strata::cuda
