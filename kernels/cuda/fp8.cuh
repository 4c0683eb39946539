#ifndef KERNELS_CUDA_FP8_CUH_
#define KERNELS_CUDA_FP8_CUH_

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>

// E4M3 numbers (kernels/fp8.h) on the device.  Each is a bf16 number too, so
// widening is exact; it works without the conversions that sm_89 has first.
namespace strata::cuda {

// `small` as bf16 pairs with the exponent's bits where bf16 has its low ones:
// it is 2^-120 of the numbers.
__device__ inline uint32_t WidenSmall(uint32_t small) {
  const uint32_t two_to_120 = 0x7b807b80u;
  const __nv_bfloat162 wide =
      __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&small),
              *reinterpret_cast<const __nv_bfloat162*>(&two_to_120));
  return *reinterpret_cast<const uint32_t*>(&wide);
}

// Of four numbers, bytes 0 and 2, or 1 and 3, as bf16 in the low and the high
// half: where the order may be chosen, cheaper than WidenFp8.  REQUIRES: no
// NaN.
__device__ inline uint32_t WidenFp8Even(uint32_t four) {
  return WidenSmall((four << 8 & 0x80008000u) | (four << 4 & 0x07f007f0u));
}
__device__ inline uint32_t WidenFp8Odd(uint32_t four) {
  return WidenSmall((four & 0x80008000u) | (four >> 4 & 0x07f007f0u));
}

// Two numbers (byte 0 and byte 1 of `pair`; the others do not count) as bf16 in
// the low and the high half.  REQUIRES: no NaN.
__device__ inline uint32_t WidenFp8(uint32_t pair) {
  return WidenFp8Even((pair & 0xff) | (pair & 0xff00) << 8);
}

// Rounds to nearest, ties to even, and saturates: byte 0 is `low`, byte 1
// `high`.
__device__ inline uint32_t NarrowToFp8(float low, float high) {
  return __nv_cvt_float2_to_fp8x2(float2{low, high}, __NV_SATFINITE, __NV_E4M3);
}

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_FP8_CUH_
