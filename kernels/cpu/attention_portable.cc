#include <cstring>

#include "kernels/cpu/attention_kernel.h"
#include "kernels/cpu/exp.h"
// Behind the others; see there.
#include "kernels/cpu/attention_kernel-inl.h"
#include "kernels/cpu/simd_portable.h"

namespace strata::cpu {

void internal::AttendPortable(const AttentionSplit& split) {
  Attend<Portable>(split);
}

AttentionKernel GetAttentionKernel(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512)
    return {.bf16_queries = true, .attend = internal::AttendAvx512};
  if (isa == Isa::kAvx2)
    return {.bf16_queries = false, .attend = internal::AttendAvx2};
#endif
  (void)isa;
  return {.bf16_queries = false, .attend = internal::AttendPortable};
}

}  // namespace strata::cpu
