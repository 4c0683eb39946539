#include <cstddef>
#include <cstring>

#include "kernels/cpu/exp.h"
#include "kernels/cpu/logits_kernel.h"
// Behind the others; see there.
#include "kernels/cpu/logits_kernel-inl.h"
#include "kernels/cpu/simd_portable.h"

namespace strata::cpu {

LogitsKernel GetLogitsKernel(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return internal::LogitsKernelAvx512();
  if (isa == Isa::kAvx2) return internal::LogitsKernelAvx2();
#endif
  (void)isa;
  return MakeLogitsKernel<Portable>();
}

}  // namespace strata::cpu
