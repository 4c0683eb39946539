#include <cstdint>

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/weights.cuh"

// Many rows: a tiled product on tensor cores, with rows of the input as the
// rows of an mma and outputs as its columns,
//
//   y [kM rows, kN outputs] += x [kM, 32] W^T
//
// over 32 columns at a time, in stages of shared memory.  bf16 comes by
// cp.async, zeros past the last column; other weights by way of registers: fp8
// widened, quantised ones scaled and rounded to bf16.
// A warp has 32 outputs of a tile; of SwiGLU 16 of each matrix, so that a
// thread holds both sums it needs.  The order of a sum depends on cols alone,
// not on the shape of the tile.
namespace strata::cuda {
namespace {

constexpr int kStageCols = 32;
constexpr int kWarpN = 32;
// In bf16s: 8 rows, which are read at once, begin in different banks.
constexpr int kStride = kStageCols + 8;

// A block's tile: kM rows, kN outputs, kWarpM x kWarpN of them each warp.
template <int kRows, int kOutputs, int kWarpRows, int kNumStages>
struct Shape {
  static constexpr int kM = kRows;
  static constexpr int kN = kOutputs;
  static constexpr int kWarpM = kWarpRows;
  static constexpr int kStages = kNumStages;
  static constexpr int kWarpsN = kN / kWarpN;
  static constexpr int kThreads = kM / kWarpM * kWarpsN * 32;
};
using LargeShape = Shape<128, 128, 64, 4>;
using SmallShape = Shape<64, 64, 32, 6>;
// Few rows: the weights' way from memory is the limit, so many blocks and deep
// pipelines.
using Rows64Shape = Shape<64, 32, 16, 10>;
using Rows32Shape = Shape<32, 32, 16, 10>;

template <typename S>
struct alignas(16) Stage {
  Bf16 x[S::kM][kStride];
  Bf16 w[S::kN][kStride];
};
template <typename S>
using Stages = Stage<S>[S::kStages];

// Brings the block's rows of x and W to shared memory, 32 columns a step.
template <typename S, WeightFormat kFormat>
class Loader {
 public:
  __device__ Loader(const ProductArgs& args, int64_t first_row,
                    const Tile& tile, Stages<S>& stages)
      : args_(args), first_row_(first_row), stages_(stages) {
    for (int i = 0; i < kWeightChunks; ++i) {
      const int task = threadIdx.x + i * S::kThreads;
      if (task >= kTasks) break;
      const Output at = OutputAt<16>(args, tile, task / kRowTasks);
      const DeviceMatrix& w = args.w[at.matrix];
      valid_[i] = at.index < w.rows;
      const int row = valid_[i] ? at.index : 0;
      chunks_[i] = RowChunks<kFormat>(w, row);
      scales_[i] = BlockScales<kFormat>(w, row);
    }
    Fetch(0);
  }

  __device__ int num_steps() const {
    return DivideUp(args_.w[0].cols, kStageCols);
  }

  // Starts step `step`, the one after the last call's; one group of copies.
  __device__ void Start(int step) {
    if (step < num_steps()) {
      StartInput(step);
      StartWeights(step);
    }
    CpAsyncCommit();
  }

 private:
  static constexpr bool kIsCopied = kFormat == WeightFormat::kBf16;
  // A thread copies 8 weights, or unpacks 16, at once.
  static constexpr int kTaskWeights = kIsCopied ? 8 : 16;
  static constexpr int kRowTasks = kStageCols / kTaskWeights;
  static constexpr int kTasks = S::kN * kRowTasks;
  static constexpr int kWeightChunks = (kTasks + S::kThreads - 1) / S::kThreads;

  __device__ void StartInput(int step) {
    constexpr int kChunks = kStageCols / 8;
    Stage<S>& stage = stages_[step % S::kStages];
    for (int i = threadIdx.x; i < S::kM * kChunks; i += S::kThreads) {
      const int row = i / kChunks, chunk = i % kChunks;
      const int col = step * kStageCols + chunk * 8;
      const int cols = args_.w[0].cols;
      const bool valid = first_row_ + row < args_.rows && col < cols;
      const Bf16* from = args_.x;
      if (valid) from += (first_row_ + row) * cols + col;
      CpAsync16(&stage.x[row][chunk * 8], from, valid);
    }
  }

  __device__ void StartWeights(int step) {
    Stage<S>& stage = stages_[step % S::kStages];
    for (int i = 0; i < kWeightChunks; ++i) {
      const int task = threadIdx.x + i * S::kThreads;
      if (task >= kTasks) break;
      Bf16* to = &stage.w[task / kRowTasks][task % kRowTasks * kTaskWeights];
      if constexpr (kIsCopied) {
        const int chunk = step * kRowTasks + task % kRowTasks;
        CpAsync16(to, chunks_[i] + chunk,
                  valid_[i] && chunk * 8 < args_.w[0].cols);
      } else {
        for (int half = 0; half < 2; ++half) {
          reinterpret_cast<uint4*>(to)[half] = Fetched(i, half);
        }
      }
    }
    if (step + 1 < num_steps()) Fetch(step + 1);
  }

  // Half of the 16 weights that Fetch has loaded.
  __device__ uint4 Fetched(int i, int half) const {
    const uint4& raw = raw_[i];
    if constexpr (kFormat == WeightFormat::kFp8) {
      const uint32_t low = half == 0 ? raw.x : raw.z;
      const uint32_t high = half == 0 ? raw.y : raw.w;
      return {WidenFp8(low), WidenFp8(low >> 16), WidenFp8(high),
              WidenFp8(high >> 16)};
    } else {
      float v[8];
      const int group =
          kFormat == WeightFormat::kQ4_0 ? threadIdx.x % 2 * 2 + half : half;
      UnpackWeights<kFormat>(raw, group, v);
      for (float& w : v) w *= scale_[i];
      return PackBf16(v);
    }
  }

  // Loads what the next StartWeights unpacks; of Q4_0, which keeps elements 16
  // apart together, both halves of a block load all of it.
  __device__ void Fetch(int step) {
    if constexpr (!kIsCopied) {
      const int chunk =
          kFormat == WeightFormat::kQ4_0 ? step : step * 2 + threadIdx.x % 2;
      const bool exists = chunk * kChunkWeights<kFormat> < args_.w[0].cols;
      for (int i = 0; i < kWeightChunks; ++i) {
        const bool valid = valid_[i] && exists;
        raw_[i] = valid ? chunks_[i][chunk] : uint4{0, 0, 0, 0};
        if constexpr (kHasBlockScales<kFormat>) {
          scale_[i] = valid ? Widen(scales_[i][step]) : 0.0f;
        }
      }
    }
  }

  const ProductArgs& args_;
  const int64_t first_row_;
  Stages<S>& stages_;
  const uint4* chunks_[kWeightChunks] = {};
  const F16* scales_[kWeightChunks] = {};
  bool valid_[kWeightChunks] = {};
  uint4 raw_[kWeightChunks];
  float scale_[kWeightChunks];
};

// A warp's part of the tile.
template <typename S>
class WarpSums {
 public:
  // The warp's first row and output within the tile.
  __device__ int row() const { return warp() / S::kWarpsN * S::kWarpM; }
  __device__ int output() const { return warp() % S::kWarpsN * kWarpN; }

  __device__ void Multiply(const Stage<S>& stage) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < kStageCols; k += 16) {
      uint32_t w[kWarpN / 16][4];  // the B fragments of two 8 outputs each
      for (int n = 0; n < kWarpN / 16; ++n) {
        Ldmatrix(w[n], &stage.w[output() + 16 * n + lane % 8 + lane / 16 * 8]
                               [k + lane / 8 % 2 * 8]);
      }
      for (int m = 0; m < S::kWarpM / 16; ++m) {
        uint32_t x[4];
        Ldmatrix(x, &stage.x[row() + 16 * m + lane % 16][k + lane / 16 * 8]);
        for (int n = 0; n < kWarpN / 8; ++n) {
          const uint32_t b[2] = {w[n / 2][n % 2 * 2], w[n / 2][n % 2 * 2 + 1]};
          MmaBf16(sum_[m][n], x, b);
        }
      }
    }
  }

  __device__ void Store(const ProductArgs& args, int64_t first_row,
                        const Tile& tile) const {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const bool is_swiglu = args.then == ProductArgs::Then::kSwiGlu;
#pragma unroll
    for (int m = 0; m < S::kWarpM / 16; ++m) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int64_t at_row = first_row + row() + 16 * m + g + j / 2 * 8;
        if (at_row >= args.rows) continue;
#pragma unroll
        for (int n = 0; n < kWarpN / 8; ++n) {
          const Output at =
              OutputAt<16>(args, tile, output() + 8 * n + 2 * t + j % 2);
          if (at.index >= args.w[at.matrix].rows) continue;
          const float sum = ScaleOf(args, at) * sum_[m][n][j];
          if (!is_swiglu) {
            StoreOutput(args, at_row, at, sum);
          } else if (n < 2) {  // the others are w[1]'s
            const float up = ScaleOf(args, {1, at.index}) * sum_[m][n + 2][j];
            StoreSwiGlu(args, at_row, at.index, sum, up);
          }
        }
      }
    }
  }

 private:
  __device__ static int warp() { return threadIdx.x / 32; }

  float sum_[S::kWarpM / 16][kWarpN / 8][4] = {};
};

template <typename S, WeightFormat kFormat>
__device__ void ComputeTile(const ProductArgs& args, int64_t first_row,
                            const Tile& tile, Stages<S>& stages) {
  Loader<S, kFormat> loader(args, first_row, tile, stages);
  WarpSums<S> sums;
  const int steps = loader.num_steps();
  for (int i = 0; i < S::kStages - 1; ++i) loader.Start(i);
  for (int i = 0; i < steps; ++i) {
    CpAsyncWait<S::kStages - 2>();  // for step i
    __syncthreads();                // and the stage of step i - 1 is free
    loader.Start(i + S::kStages - 1);
    sums.Multiply(stages[i % S::kStages]);
  }
  GriddepLaunch();
  sums.Store(args, first_row, tile);
}

// Grid [tiles of rows, tiles of outputs]: blocks that run together share
// weights.
template <typename S>
__global__ void __launch_bounds__(S::kThreads, 2) GemmKernel(ProductArgs args) {
  Stages<S>& stages = DynamicShared<Stages<S>>();
  const int64_t first_row = int64_t{blockIdx.x} * S::kM;
  const Tile tile = TileAt<S::kN>(args, blockIdx.y);
  GriddepWait();
  if (!AlwaysComputed(args, tile.matrix) && args.any[0] == 0) return;
  switch (args.w[tile.matrix].format) {
    case WeightFormat::kQ8_0:
      return ComputeTile<S, WeightFormat::kQ8_0>(args, first_row, tile, stages);
    case WeightFormat::kQ4_0:
      return ComputeTile<S, WeightFormat::kQ4_0>(args, first_row, tile, stages);
    case WeightFormat::kFp8:
      return ComputeTile<S, WeightFormat::kFp8>(args, first_row, tile, stages);
    default:
      return ComputeTile<S, WeightFormat::kBf16>(args, first_row, tile, stages);
  }
}

template <typename S>
dim3 GridOf(const ProductArgs& args) {
  return dim3(DivideUp(args.rows, S::kM), NumTiles<S::kN>(args));
}

template <typename S>
cudaError_t LaunchGemm(const ProductArgs& args, cudaStream_t stream) {
  return Launch<GemmKernel<S>>({.grid = GridOf<S>(args),
                                .block = dim3(S::kThreads),
                                .smem_bytes = sizeof(Stages<S>),
                                .stream = stream,
                                .overlap = true},
                               args);
}

}  // namespace

cudaError_t Gemm(const ProductArgs& args, cudaStream_t stream) {
  if (args.rows <= 32) return LaunchGemm<Rows32Shape>(args, stream);
  if (args.rows <= 64) return LaunchGemm<Rows64Shape>(args, stream);
  int sms = 0;
  const cudaError_t error = CountSms(&sms);
  if (error != cudaSuccess) return error;
  // Small tiles where large ones would leave multiprocessors idle.
  const dim3 grid = GridOf<LargeShape>(args);
  if (grid.x * grid.y < unsigned(sms)) {
    return LaunchGemm<SmallShape>(args, stream);
  }
  return LaunchGemm<LargeShape>(args, stream);
}

}  // namespace strata::cuda
