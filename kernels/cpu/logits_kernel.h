#ifndef KERNELS_CPU_LOGITS_KERNEL_H_
#define KERNELS_CPU_LOGITS_KERNEL_H_

#include "kernels/cpu/cpu_features.h"

namespace strata::cpu {

// Passes over a row of logits.  Sums have an order that n alone determines:
// lanes in f32 over blocks of kLogitsBlock elements, these in double.
inline constexpr int kLogitsBlock = 1024;

struct LogitsKernel {
  // The largest x; NaN if an x is NaN.
  float (*max)(const float* x /*[n]*/, int n);
  // The first index with the value `max`, which is there.
  int (*find)(const float* x /*[n]*/, int n, float max);
  // w = exp((x - max) * scale), where w is not null; returns their sum.
  // REQUIRES: x <= max, max finite, scale > 0.
  double (*exp)(const float* x /*[n]*/, int n, float max, float scale,
                float* w /*[n] or null*/);
  // The sum of w over the elements with x >= threshold.
  double (*mass)(const float* x /*[n]*/, const float* w /*[n]*/, int n,
                 float threshold);
  // How many elements have x >= threshold.
  double (*count)(const float* x /*[n]*/, int n, float threshold);
};

// The kernel for `isa`, which must be there.
LogitsKernel GetLogitsKernel(Isa isa);

namespace internal {
LogitsKernel LogitsKernelAvx2();
LogitsKernel LogitsKernelAvx512();
}  // namespace internal

}  // namespace strata::cpu

#endif  // KERNELS_CPU_LOGITS_KERNEL_H_
