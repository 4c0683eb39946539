#include "kernels/cpu/attention_kernel.h"
#include "kernels/cpu/exp.h"

#if defined(__x86_64__)

#pragma GCC target("avx2,fma")

#include "kernels/cpu/attention_kernel-inl.h"
#include "kernels/cpu/simd_avx2.h"

namespace strata::cpu {

void internal::AttendAvx2(const AttentionSplit& split) { Attend<Avx2>(split); }

}  // namespace strata::cpu

#endif  // defined(__x86_64__)
