#include <cstddef>

#include "kernels/cpu/exp.h"
#include "kernels/cpu/logits_kernel.h"

#if defined(__x86_64__)

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma")

#include "kernels/cpu/logits_kernel-inl.h"
#include "kernels/cpu/simd_avx512.h"

namespace strata::cpu {

LogitsKernel internal::LogitsKernelAvx512() {
  return MakeLogitsKernel<Avx512>();
}

}  // namespace strata::cpu

#endif  // defined(__x86_64__)
