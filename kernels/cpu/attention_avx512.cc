#include "kernels/cpu/attention_kernel.h"
#include "kernels/cpu/exp.h"

#if defined(__x86_64__)

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma")

#include "kernels/cpu/attention_kernel-inl.h"
#include "kernels/cpu/simd_avx512.h"

namespace strata::cpu {

void internal::AttendAvx512(const AttentionSplit& split) {
  Attend<Avx512>(split);
}

}  // namespace strata::cpu

#endif  // defined(__x86_64__)
