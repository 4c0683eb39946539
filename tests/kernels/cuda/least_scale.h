#ifndef TESTS_KERNELS_CUDA_LEAST_SCALE_H_
#define TESTS_KERNELS_CUDA_LEAST_SCALE_H_

#include <cmath>

#include "kernels/fp8.h"

namespace strata {

// The least exponent, as a page of fp8 has it, with which numbers up to `max`
// do not saturate.
inline int LeastScale(float max) {
  int scale = 127;
  while (max > std::ldexp(kMaxFp8, scale - 127)) ++scale;
  while (scale > 27 && max <= std::ldexp(kMaxFp8, scale - 128)) --scale;
  return scale;
}

}  // namespace strata

#endif  // TESTS_KERNELS_CUDA_LEAST_SCALE_H_
