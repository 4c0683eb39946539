#ifndef KERNELS_CUDA_PRODUCT_CUH_
#define KERNELS_CUDA_PRODUCT_CUH_

#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/cuda/ops.h"

// How the kernels of Product divide its outputs into tiles, and what they do
// with a sum once it is complete.
namespace strata::cuda {

// kSize consecutive outputs of one matrix, fewer at its end.  Of kSwiGlu: kSize
// / 2 of each of the first two matrices.
struct Tile {
  int matrix;
  int first;
};

// An output: row `index` of w[matrix].
struct Output {
  int matrix;
  int index;
};

__host__ __device__ inline int DivideUp(int a, int b) {
  return (a + b - 1) / b;
}

template <int kSize>
__host__ __device__ int NumTiles(const ProductArgs& args) {
  if (args.then == ProductArgs::Then::kSwiGlu) {
    return DivideUp(args.w[0].rows, kSize / 2);
  }
  return DivideUp(args.w[0].rows, kSize) + DivideUp(args.w[1].rows, kSize) +
         DivideUp(args.w[2].rows, kSize);
}

template <int kSize>
__device__ Tile TileAt(const ProductArgs& args, int tile) {
  if (args.then == ProductArgs::Then::kSwiGlu) return {0, tile * (kSize / 2)};
  int matrix = 0;
  while (tile >= DivideUp(args.w[matrix].rows, kSize)) {
    tile -= DivideUp(args.w[matrix++].rows, kSize);
  }
  return {matrix, tile * kSize};
}

// Output `i` of a tile; of kSwiGlu, kGroup outputs of w[0] and the same kGroup
// of w[1] take turns.  Its index may lie past the matrix's end.
template <int kGroup>
__device__ Output OutputAt(const ProductArgs& args, const Tile& tile, int i) {
  if (args.then != ProductArgs::Then::kSwiGlu) {
    return {tile.matrix, tile.first + i};
  }
  return {i / kGroup % 2, tile.first + i / (2 * kGroup) * kGroup + i % kGroup};
}

// How many multiprocessors the current device has.
inline cudaError_t CountSms(int* sms) {
  int device = 0;
  const cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  return cudaDeviceGetAttribute(sms, cudaDevAttrMultiProcessorCount, device);
}

// Whether a tile of w[matrix] is to be computed whatever `any` says.
__device__ inline bool AlwaysComputed(const ProductArgs& args, int matrix) {
  return matrix == 0 || args.any == nullptr;
}

// What the sums of an output are to be multiplied by before they are stored.
__device__ inline float ScaleOf(const ProductArgs& args, const Output& at) {
  const float* scales = args.w[at.matrix].row_scales;
  return scales != nullptr ? scales[at.index] : 1.0f;
}

// y, at `row` of the input: stores or adds.
__device__ inline void StoreOutput(const ProductArgs& args, int64_t row,
                                   const Output& at, float sum) {
  const DeviceMatrix(&w)[3] = args.w;
  const int64_t stride =
      args.y_stride > 0 ? args.y_stride : w[0].rows + w[1].rows + w[2].rows;
  const int offset =
      (at.matrix > 0 ? w[0].rows : 0) + (at.matrix > 1 ? w[1].rows : 0);
  const float* bias = args.bias[at.matrix];
  if (bias != nullptr) sum += bias[at.index];
  float* y = args.y + row * stride + offset + at.index;
  *y = args.then == ProductArgs::Then::kAdd ? *y + sum : sum;
}

// z, of the sums of output `index` of the first two matrices.
__device__ inline void StoreSwiGlu(const ProductArgs& args, int64_t row,
                                   int index, float gate, float up) {
  if (args.bias[0] != nullptr) gate += args.bias[0][index];
  if (args.bias[1] != nullptr) up += args.bias[1][index];
  Bf16* z = args.z + row * args.w[0].rows + index;
  *reinterpret_cast<__nv_bfloat16*>(z) =
      __float2bfloat16(gate / (1.0f + expf(-gate)) * up);
}

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_PRODUCT_CUH_
