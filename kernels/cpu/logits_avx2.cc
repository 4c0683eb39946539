#include <cstddef>

#include "kernels/cpu/exp.h"
#include "kernels/cpu/logits_kernel.h"

#if defined(__x86_64__)

#pragma GCC target("avx2,fma")

#include "kernels/cpu/logits_kernel-inl.h"
#include "kernels/cpu/simd_avx2.h"

namespace strata::cpu {

LogitsKernel internal::LogitsKernelAvx2() { return MakeLogitsKernel<Avx2>(); }

}  // namespace strata::cpu

#endif  // defined(__x86_64__)
