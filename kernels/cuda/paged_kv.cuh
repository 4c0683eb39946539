#ifndef KERNELS_CUDA_PAGED_KV_CUH_
#define KERNELS_CUDA_PAGED_KV_CUH_

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/ops.h"
#include "kernels/fp8.h"

// Where the cache keeps the keys and values of a row's sequence, and how the
// attention kernels hold them in shared memory and registers.
namespace strata::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kInfinity = __builtin_huge_valf();

// 16-byte chunks of a token.
template <typename Element, int kHeadDim>
inline constexpr int kTokenChunks =
    kHeadDim* static_cast<int>(sizeof(Element)) / 16;
// From one token to the next in shared memory: an odd number, so that the
// chunks of 8 consecutive tokens, which an ldmatrix reads at once, lie in
// different banks.
template <typename Element, int kHeadDim>
inline constexpr int kRowChunks = kTokenChunks<Element, kHeadDim> | 1;

// The pages that `layer` reads for `row`: token t lies in page
// [t / page_tokens].  REQUIRES: not a padding row.
__device__ inline const int32_t* PagesOf(const DeviceStep& step, int row,
                                         int layer) {
  const int slot =
      step.slot_of[int64_t{step.strategies[row]} * step.layers + layer];
  return step.pages + step.tables[row] +
         int64_t{slot} * step.table_strides[row];
}

__device__ inline unsigned char* Slab(const DevicePages& pages) {
  return static_cast<unsigned char*>(pages.data);
}

// The first byte of the slab of the key of `token`, which lies in `page`.  Its
// value lies ValueOffset(pages) behind: a page has its V heads right behind its
// K heads.
template <typename Element>
__device__ int64_t KeyAt(const DevicePages& pages, int page, int kv_head,
                         int token) {
  const int in_page =
      (kv_head * pages.page_tokens + token % pages.page_tokens) *
      pages.head_dim * static_cast<int>(sizeof(Element));
  return page * pages.page_bytes + in_page;
}
template <typename Element>
__device__ int64_t ValueOffset(const DevicePages& pages) {
  return int64_t{pages.kv_heads} * pages.page_tokens * pages.head_dim *
         static_cast<int>(sizeof(Element));
}

// The same of a key's scale in a page of fp8.
__device__ inline int64_t KeyScaleAt(const DevicePages& pages, int page,
                                     int kv_head, int token) {
  const int heads = pages.kv_heads * pages.page_tokens;  // times tokens
  const int in_page = 2 * heads * pages.head_dim + kv_head * pages.page_tokens +
                      token % pages.page_tokens;
  return page * pages.page_bytes + in_page;
}
__device__ inline int ValueScaleOffset(const DevicePages& pages) {
  return pages.kv_heads * pages.page_tokens;
}

// A scale as a page has it is the exponent of an f32.  That of a token with an
// infinity or a NaN is kInfiniteScale; its numbers are zeros, so that what
// attends to it becomes NaN, as with bf16.
inline constexpr uint32_t kInfiniteScale = 255;

// The least scale with which numbers up to `max` become fp8 without saturating,
// of the bits of max >= 0.
__device__ inline uint32_t ScaleFor(uint32_t max_bits) {
  constexpr uint32_t kMinScale = 27;  // 2^-100: 1 / scale is to be finite
  constexpr uint32_t kInfinityBits = 0x7f800000;
  if (max_bits >= kInfinityBits) return kInfiniteScale;
  // The largest fp8 is 1.75 * 2^8.  What has a larger mantissa carries.
  const uint32_t scale = (max_bits + 0x1fffff) >> 23;
  return scale < kMinScale + 8 ? kMinScale : scale - 8;
}
__device__ inline float ScaleValue(uint32_t scale) {
  return __uint_as_float(scale << 23);
}
// 1 / ScaleValue.  REQUIRES: finite.
__device__ inline float InverseScale(uint32_t scale) {
  return __uint_as_float((254 - scale) << 23);
}

// Two bf16 as a register of a fragment.
__device__ inline uint32_t PackBf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// The products of two pairs of bf16.
__device__ inline uint32_t MultiplyBf16(uint32_t a, uint32_t b) {
  const __nv_bfloat162 product =
      __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&a),
              *reinterpret_cast<const __nv_bfloat162*>(&b));
  return *reinterpret_cast<const uint32_t*>(&product);
}

// launch.operator()<element>(), of a page's format.
template <typename Launch>
cudaError_t WithElement(KvFormat format, Launch launch) {
  return format == KvFormat::kFp8 ? launch.template operator()<Fp8>()
                                  : launch.template operator()<Bf16>();
}

// launch.operator()<head_dim>(), for the sizes that attention is compiled for.
template <typename Launch>
cudaError_t WithHeadDim(int head_dim, Launch launch) {
  switch (head_dim) {
    case 16:
      return launch.template operator()<16>();
    case 32:
      return launch.template operator()<32>();
    case 64:
      return launch.template operator()<64>();
    case 80:
      return launch.template operator()<80>();
    case 96:
      return launch.template operator()<96>();
    case 128:
      return launch.template operator()<128>();
    case 256:
      return launch.template operator()<256>();
  }
  return cudaErrorInvalidValue;
}

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_PAGED_KV_CUH_
