#ifndef KERNELS_CPU_LOGITS_KERNEL_H_
#define KERNELS_CPU_LOGITS_KERNEL_H_

#include <cstdint>

#include "kernels/cpu/cpu_features.h"

namespace strata::cpu {

// Passes over a row of logits.  Sums have an order that n alone determines:
// lanes in f32 over blocks of kLogitsBlock elements, these in double.
inline constexpr int kLogitsBlock = 1024;

struct LogitsMeasure {
  double count;
  double mass;
};

struct LogitsKernel {
  // The largest x; NaN if an x is NaN.
  float (*max)(const float* x /*[n]*/, int n);
  // The first index with the value `max`, which is there.
  int (*find)(const float* x /*[n]*/, int n, float max);
  // w = exp((x - max) * scale), where w is not null; returns their sum.
  // REQUIRES: x <= max, max finite, scale > 0.
  double (*exp)(const float* x /*[n]*/, int n, float max, float scale,
                float* w /*[n] or null*/);
  // Elements with x >= threshold: how many, and the sum of their w.
  LogitsMeasure (*measure)(const float* x /*[n]*/, const float* w /*[n]*/,
                           int n, float threshold);
  // Sets w to 0 where x < threshold; returns the sum of w.
  double (*keep)(const float* x /*[n]*/, int n, float threshold,
                 float* w /*[n]*/);
  // Writes the rising indices of low <= x < high; returns how many.
  int (*collect)(const float* x /*[n]*/, int n, float low, float high,
                 int32_t* found /*[n]*/);
};

// The kernel for `isa`, which must be there.
LogitsKernel GetLogitsKernel(Isa isa);

namespace internal {
LogitsKernel LogitsKernelAvx2();
LogitsKernel LogitsKernelAvx512();
}  // namespace internal

}  // namespace strata::cpu

#endif  // KERNELS_CPU_LOGITS_KERNEL_H_
