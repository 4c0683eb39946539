#ifndef KERNELS_CUDA_WEIGHTS_CUH_
#define KERNELS_CUDA_WEIGHTS_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/ops.h"

// Weights and activations in chunks: 16 bytes that are loaded at once.  A chunk
// of bf16 holds 8 numbers; one of a DeviceMatrix 8, 16 or 32 weights by format.
namespace strata::cuda {

// Weights of one row in 16 bytes.
template <WeightFormat kFormat>
inline constexpr int kChunkWeights = 16 * 16 / RowBytes(kFormat, 16);

template <WeightFormat kFormat>
inline constexpr bool kHasBlockScales = HasBlockScales(kFormat);

__device__ inline float Widen(Bf16 v) {
  return __uint_as_float(uint32_t{static_cast<uint16_t>(v)} << 16);
}

__device__ inline float Widen(F16 v) {
  return __half2float(__ushort_as_half(static_cast<uint16_t>(v)));
}

__device__ inline uint32_t PackBf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

__device__ inline uint4 PackBf16(const float (&v)[8]) {
  return {PackBf16(v[0], v[1]), PackBf16(v[2], v[3]), PackBf16(v[4], v[5]),
          PackBf16(v[6], v[7])};
}

__device__ inline void Unpack(uint32_t pair, float* v /*[2]*/) {
  v[0] = __uint_as_float(pair << 16);
  v[1] = __uint_as_float(pair & 0xffff0000u);
}

// The four E4M3 numbers of a word.
__device__ inline void UnpackFp8(uint32_t word, float* v /*[4]*/) {
  const uint32_t even = WidenFp8Even(word), odd = WidenFp8Odd(word);
  v[0] = __uint_as_float(even << 16);
  v[1] = __uint_as_float(odd << 16);
  v[2] = __uint_as_float(even & 0xffff0000u);
  v[3] = __uint_as_float(odd & 0xffff0000u);
}

// Numbers 8 group to 8 group + 7 of a chunk; not yet scaled where there are
// scales.
// REQUIRES: 8 group < kChunkWeights.
template <WeightFormat kFormat>
__device__ void UnpackWeights(const uint4& chunk, int group, float (&v)[8]) {
  [[maybe_unused]] const bool second = group % 2 == 1;  // half of the 16 bytes
  [[maybe_unused]] const uint32_t words[2] = {second ? chunk.z : chunk.x,
                                              second ? chunk.w : chunk.y};
  if constexpr (kFormat == WeightFormat::kBf16) {
    Unpack(chunk.x, v);
    Unpack(chunk.y, v + 2);
    Unpack(chunk.z, v + 4);
    Unpack(chunk.w, v + 6);
  } else if constexpr (kFormat == WeightFormat::kFp8) {
    UnpackFp8(words[0], v);
    UnpackFp8(words[1], v + 4);
  } else {
    for (int i = 0; i < 8; ++i) {
      const uint32_t byte = words[i / 4] >> (i % 4 * 8);
      if constexpr (kFormat == WeightFormat::kQ8_0) {
        v[i] = static_cast<float>(static_cast<int8_t>(byte));
      } else {
        const int nibble = byte >> (group / 2 * 4) & 15;
        v[i] = static_cast<float>(nibble - 8);
      }
    }
  }
}

// Row `row` of `w`, as chunks.
template <WeightFormat kFormat>
__device__ const uint4* RowChunks(const DeviceMatrix& w, int64_t row) {
  return static_cast<const uint4*>(w.data) +
         row * (w.cols / kChunkWeights<kFormat>);
}

// The scales of row `row`, one for 32 weights; null where blocks have none.
template <WeightFormat kFormat>
__device__ const F16* BlockScales(const DeviceMatrix& w, int64_t row) {
  return kHasBlockScales<kFormat> ? w.block_scales + row * (w.cols / 32)
                                  : nullptr;
}

// What the numbers of chunk `chunk` of a row are to be multiplied by, but for
// the row's scale.
template <WeightFormat kFormat>
__device__ float ChunkScale(const F16* scales, int chunk) {
  if constexpr (!kHasBlockScales<kFormat>) return 1.0f;
  return Widen(scales[chunk * kChunkWeights<kFormat> / 32]);
}

// What the numbers of row `row` are to be multiplied by, but for scales of its
// blocks.
template <WeightFormat kFormat>
__device__ float RowScale(const DeviceMatrix& w, int row) {
  return kFormat == WeightFormat::kFp8 ? w.row_scales[row] : 1.0f;
}

// x * scale * weight of 8 columns.
__device__ inline uint4 NormalizedChunk(const float* x, const float* weight,
                                        float scale) {
  float v[8];
  for (int i = 0; i < 8; i += 4) {
    const float4 a = *reinterpret_cast<const float4*>(x + i);
    const float4 b = *reinterpret_cast<const float4*>(weight + i);
    v[i] = a.x * scale * b.x;
    v[i + 1] = a.y * scale * b.y;
    v[i + 2] = a.z * scale * b.z;
    v[i + 3] = a.w * scale * b.w;
  }
  return PackBf16(v);
}

__device__ inline float SquareSum(const float4& v) {
  return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
}

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_WEIGHTS_CUH_
