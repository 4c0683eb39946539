#include <cstdint>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product.cuh"
#include "kernels/cuda/product_kernels.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/weights.cuh"

// Up to 16 rows: tensor cores, with 16 outputs as the rows of an mma and 8 rows
// of the input as its columns,
//
//   y^T [16 outputs, 8 rows] += W [16, 16] x^T
//
// A block has 16 kTiles outputs.  Its warps take slices of 64 columns in turn,
// each with a cp.async pipeline of its own and no barrier, and add up at the
// end.  Quantised weights go to shared memory as they are and to the mma as
// whole numbers, fp8 as bf16; where blocks have scales, the sum of each 32
// columns is then scaled.
namespace strata::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kStages = 4;
constexpr int kSliceCols = 64;
constexpr int kSliceBlocks = kSliceCols / 32;
// Bytes from row to row of a slice: 8 rows, which are read at once, begin in
// different banks.
constexpr int kPadBytes = 16;
constexpr int kInputStride = kSliceCols * sizeof(Bf16) + kPadBytes;
template <WeightFormat kFormat>
constexpr int kWeightStride =
    kSliceCols / kChunkWeights<kFormat> * 16 + kPadBytes;

template <int kTiles, int kRowTiles>
struct alignas(16) Stage {
  unsigned char w[kTiles * 16 * kInputStride];  // enough for every format
  unsigned char x[kRowTiles * 8 * kInputStride];
};

template <int kTiles, int kRowTiles>
union Shared {
  Stage<kTiles, kRowTiles> stage[kWarps][kStages];
  float sum[kWarps][kRowTiles * 8][kTiles * 16];  // once the stages are done
};

// One warp's share of a block's outputs.
template <WeightFormat kFormat, int kTiles, int kRowTiles>
class WarpProduct {
 public:
  using Stages = Stage<kTiles, kRowTiles>[kStages];

  __device__ WarpProduct(const ProductArgs& args, const Tile& tile,
                         Stages& stages)
      : args_(args), tile_(tile), stages_(stages), cols_(args.w[0].cols) {
    const int slices = DivideUp(cols_, kSliceCols);
    num_slices_ = (slices - int(threadIdx.x / 32) + kWarps - 1) / kWarps;
  }

  // Starts to copy the first weights.
  __device__ void Prefetch() {
    for (int i = 0; i < kStages - 1; ++i) StartWeights(i);
  }

  // Multiplies the warp's columns.  REQUIRES: Prefetch() was called.
  __device__ void Run() {
    for (int i = 0; i < kStages - 1; ++i) {
      StartInput(i);
      CpAsyncCommit();
    }
    Scales scales = LoadScales(0);
    for (int i = 0; i < num_slices_; ++i) {
      CpAsyncWait<kStages - 2>();  // for slice i
      __syncwarp();                // and slice i - 1 is free
      StartWeights(i + kStages - 1);
      StartInput(i + kStages - 1);
      CpAsyncCommit();
      const Scales next = LoadScales(i + 1);
      Multiply(stages_[i % kStages], scales);
      scales = next;
    }
    CpAsyncWait<0>();
  }

  __device__ void Store(float (&sum)[kRowTiles * 8][kTiles * 16]) const {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int m = 0; m < kTiles; ++m) {
      for (int n = 0; n < kRowTiles; ++n) {
        for (int j = 0; j < 4; ++j) {
          sum[8 * n + 2 * t + j % 2][16 * m + g + j / 2 * 8] = sum_[m][n][j];
        }
      }
    }
  }

 private:
  // Of rows g and g + 8 of each tile in the blocks of a slice.
  struct Scales {
    float of[kTiles][2][kSliceBlocks];
  };

  __device__ int FirstCol(int slice) const {
    return (slice * kWarps + threadIdx.x / 32) * kSliceCols;
  }

  __device__ void StartWeights(int slice) {
    if (slice >= num_slices_) return;
    constexpr int kChunks = kSliceCols / kChunkWeights<kFormat>;
    unsigned char* w = stages_[slice % kStages].w;
    const int first = FirstCol(slice) / kChunkWeights<kFormat>;
    const int chunks = cols_ / kChunkWeights<kFormat>;
    for (int i = threadIdx.x % 32; i < kTiles * 16 * kChunks; i += 32) {
      const int row = i / kChunks, chunk = i % kChunks;
      const Output at = OutputAt<16>(args_, tile_, row);
      const DeviceMatrix& matrix = args_.w[at.matrix];
      const bool valid = at.index < matrix.rows && first + chunk < chunks;
      const uint4* from =
          valid ? RowChunks<kFormat>(matrix, at.index) + first + chunk
                : static_cast<const uint4*>(matrix.data);
      CpAsync16(w + row * kWeightStride<kFormat> + chunk * 16, from, valid);
    }
  }

  __device__ void StartInput(int slice) {
    if (slice >= num_slices_) return;
    constexpr int kChunks = kSliceCols / 8;
    unsigned char* x = stages_[slice % kStages].x;
    const int first = FirstCol(slice) / 8, chunks = cols_ / 8;
    for (int i = threadIdx.x % 32; i < kRowTiles * 8 * kChunks; i += 32) {
      const int row = i / kChunks, chunk = i % kChunks;
      const bool valid = row < args_.rows && first + chunk < chunks;
      const uint4* from = reinterpret_cast<const uint4*>(args_.x);
      if (valid) from += row * chunks + first + chunk;
      CpAsync16(x + row * kInputStride + chunk * 16, from, valid);
    }
  }

  // Zeros past the matrix: what weights stand there does not count.
  __device__ Scales LoadScales(int slice) const {
    Scales scales = {};
    if (!kHasBlockScales<kFormat> || slice >= num_slices_) return scales;
    const int first = FirstCol(slice) / 32;
    for (int m = 0; m < kTiles; ++m) {
      for (int half = 0; half < 2; ++half) {
        const Output at = OutputAt<16>(
            args_, tile_, 16 * m + 8 * half + threadIdx.x % 32 / 4);
        const DeviceMatrix& matrix = args_.w[at.matrix];
        for (int b = 0; b < kSliceBlocks; ++b) {
          if (at.index >= matrix.rows || first + b >= cols_ / 32) continue;
          scales.of[m][half][b] =
              Widen(BlockScales<kFormat>(matrix, at.index)[first + b]);
        }
      }
    }
    return scales;
  }

  __device__ void Multiply(const Stage<kTiles, kRowTiles>& stage,
                           const Scales& scales) {
    const int lane = threadIdx.x % 32;
    for (int b = 0; b < kSliceBlocks; ++b) {
      uint32_t x[kRowTiles][4];  // two B fragments each
      for (int n = 0; n < kRowTiles; ++n) {
        Ldmatrix(x[n], stage.x + (8 * n + lane % 8) * kInputStride +
                           (4 * b + lane / 8) * 16);
      }
      for (int m = 0; m < kTiles; ++m) {
        float part[kRowTiles][4] = {};
        for (int k = 0; k < 2; ++k) {
          uint32_t w[4];
          LoadWeights(stage.w + 16 * m * kWeightStride<kFormat>, 2 * b + k, w);
          for (int n = 0; n < kRowTiles; ++n) {
            const uint32_t half[2] = {x[n][2 * k], x[n][2 * k + 1]};
            MmaBf16(kHasBlockScales<kFormat> ? part[n] : sum_[m][n], w, half);
          }
        }
        if constexpr (kHasBlockScales<kFormat>) {
          for (int n = 0; n < kRowTiles; ++n) {
            for (int j = 0; j < 4; ++j) {
              sum_[m][n][j] += scales.of[m][j / 2][b] * part[n][j];
            }
          }
        }
      }
    }
  }

  // The A fragment of 16 rows at `rows` and columns 16 k to 16 k + 15.
  __device__ static void LoadWeights(const unsigned char* rows, int k,
                                     uint32_t (&w)[4]) {
    const int lane = threadIdx.x % 32;
    constexpr int kStride = kWeightStride<kFormat>;
    if constexpr (kFormat == WeightFormat::kBf16) {
      Ldmatrix(w, rows + lane % 16 * kStride + (2 * k + lane / 16) * 16);
    } else {
      for (int i = 0; i < 4; ++i) {
        const unsigned char* row = rows + (lane / 4 + i % 2 * 8) * kStride;
        const int col = lane % 4 * 2 + i / 2 * 8;  // of the 16
        constexpr bool kIsByte = kFormat != WeightFormat::kQ4_0;
        const uint32_t pair = *reinterpret_cast<const uint16_t*>(
            row + (kIsByte ? 16 * k : k / 2 * 16) + col);
        if constexpr (kFormat == WeightFormat::kFp8) {
          w[i] = WidenFp8(pair);
        } else if constexpr (kIsByte) {
          w[i] = PackBf16(static_cast<int8_t>(pair),
                          static_cast<int8_t>(pair >> 8));
        } else {  // low nibbles are the block's first 16 columns
          const int low = pair >> (k % 2 * 4) & 15;
          const int high = pair >> (k % 2 * 4 + 8) & 15;
          w[i] = PackBf16(low - 8, high - 8);
        }
      }
    }
  }

  const ProductArgs& args_;
  const Tile tile_;
  Stages& stages_;
  const int cols_;
  int num_slices_;  // of the warp
  float sum_[kTiles][kRowTiles][4] = {};
};

// Returns false, all threads alike, if the tile is not wanted.
template <WeightFormat kFormat, int kTiles, int kRowTiles>
__device__ bool ComputeTile(const ProductArgs& args, const Tile& tile,
                            Shared<kTiles, kRowTiles>& shared) {
  const int warp = threadIdx.x / 32;
  WarpProduct<kFormat, kTiles, kRowTiles> product(args, tile,
                                                  shared.stage[warp]);
  const bool always = AlwaysComputed(args, tile.matrix);
  if (always) product.Prefetch();
  GriddepWait();
  if (!always) {
    if (args.any[0] == 0) return false;
    product.Prefetch();
  }
  product.Run();
  GriddepLaunch();
  __syncthreads();  // the stages are free for the sums
  product.Store(shared.sum[warp]);
  __syncthreads();
  return true;
}

template <int kTiles, int kRowTiles>
__device__ float WarpsSum(const Shared<kTiles, kRowTiles>& shared, int row,
                          int output) {
  float sum = 0.0f;
  for (int w = 0; w < kWarps; ++w) sum += shared.sum[w][row][output];
  return sum;
}

template <int kTiles, int kRowTiles>
__device__ void StoreTile(const ProductArgs& args, const Tile& tile,
                          const Shared<kTiles, kRowTiles>& shared) {
  const bool is_swiglu = args.then == ProductArgs::Then::kSwiGlu;
  const int outputs = is_swiglu ? 16 : kTiles * 16;
  for (int i = threadIdx.x; i < args.rows * outputs; i += kThreads) {
    const int row = i / outputs, output = i % outputs;
    const Output at = OutputAt<16>(args, tile, output);
    if (at.index >= args.w[at.matrix].rows) continue;
    const float sum = ScaleOf(args, at) * WarpsSum(shared, row, output);
    if (is_swiglu) {
      const float up =
          ScaleOf(args, {1, at.index}) * WarpsSum(shared, row, 16 + output);
      StoreSwiGlu(args, row, at.index, sum, up);
    } else {
      StoreOutput(args, row, at, sum);
    }
  }
}

template <int kTiles, int kRowTiles>
__global__ void __launch_bounds__(kThreads)
    SmallProductKernel(ProductArgs args) {
  auto& shared = DynamicShared<Shared<kTiles, kRowTiles>>();
  const Tile tile = TileAt<kTiles * 16>(args, blockIdx.x);
  bool wanted;
  switch (args.w[tile.matrix].format) {
    case WeightFormat::kQ8_0:
      wanted = ComputeTile<WeightFormat::kQ8_0>(args, tile, shared);
      break;
    case WeightFormat::kQ4_0:
      wanted = ComputeTile<WeightFormat::kQ4_0>(args, tile, shared);
      break;
    case WeightFormat::kFp8:
      wanted = ComputeTile<WeightFormat::kFp8>(args, tile, shared);
      break;
    default:
      wanted = ComputeTile<WeightFormat::kBf16>(args, tile, shared);
  }
  if (wanted) StoreTile(args, tile, shared);
}

template <int kTiles, int kRowTiles>
cudaError_t LaunchSmallProduct(const ProductArgs& args, cudaStream_t stream) {
  return Launch<SmallProductKernel<kTiles, kRowTiles>>(
      {.grid = dim3(NumTiles<kTiles * 16>(args)),
       .block = dim3(kThreads),
       .smem_bytes = sizeof(Shared<kTiles, kRowTiles>),
       .stream = stream,
       .overlap = true},
      args);
}

}  // namespace

cudaError_t SmallProduct(const ProductArgs& args, cudaStream_t stream) {
  int sms = 0;
  const cudaError_t error = CountSms(&sms);
  if (error != cudaSuccess) return error;
  // A second tile halves the reads of x, where there are blocks enough.
  constexpr int kManyOutputsAnSm = 128;
  const bool is_wide = args.then == ProductArgs::Then::kSwiGlu ||
                       args.w[0].rows + args.w[1].rows + args.w[2].rows >=
                           sms * kManyOutputsAnSm;
  if (args.rows <= 8) {
    return is_wide ? LaunchSmallProduct<2, 1>(args, stream)
                   : LaunchSmallProduct<1, 1>(args, stream);
  }
  return is_wide ? LaunchSmallProduct<2, 2>(args, stream)
                 : LaunchSmallProduct<1, 2>(args, stream);
}

}  // namespace strata::cuda
