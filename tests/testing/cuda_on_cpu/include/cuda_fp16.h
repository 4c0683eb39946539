#ifndef TESTS_TESTING_CUDA_ON_CPU_INCLUDE_CUDA_FP16_H_
#define TESTS_TESTING_CUDA_ON_CPU_INCLUDE_CUDA_FP16_H_

#include <cuda_runtime.h>

#include "kernels/cpu/half.h"

// Stands in for the toolkit's header of this name: the part that kernels use.

struct __half {
  uint16_t bits;
};

inline __half __ushort_as_half(uint16_t bits) { return {bits}; }
inline float __half2float(__half v) { return strata::cpu::HalfToFloat(v.bits); }

#endif  // TESTS_TESTING_CUDA_ON_CPU_INCLUDE_CUDA_FP16_H_
