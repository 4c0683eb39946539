#ifndef TESTS_TESTING_CUDA_ON_CPU_INCLUDE_CUDA_FP8_H_
#define TESTS_TESTING_CUDA_ON_CPU_INCLUDE_CUDA_FP8_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/fp8.h"

// Stands in for the toolkit's header of this name: the part that kernels use.

using __nv_fp8x2_storage_t = uint16_t;
enum __nv_saturation_t { __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3 };

inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(
    float2 v, __nv_saturation_t, __nv_fp8_interpretation_t) {
  const auto low = static_cast<uint16_t>(strata::ToFp8(v.x));
  const auto high = static_cast<uint16_t>(strata::ToFp8(v.y));
  return static_cast<uint16_t>(high << 8 | low);
}

#endif  // TESTS_TESTING_CUDA_ON_CPU_INCLUDE_CUDA_FP8_H_
