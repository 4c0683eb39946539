#include "kernels/cpu/cpu_features.h"

namespace strata::cpu {

Isa DetectIsa() {
#if defined(__x86_64__)
  // The compiler's run-time tests also ask whether the system saves the
  // registers.
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c")) {
    return Isa::kPortable;
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni") &&
      __builtin_cpu_supports("avx512bf16")) {
    return Isa::kAvx512;
  }
  return Isa::kAvx2;
#else
  return Isa::kPortable;
#endif
}

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "?";
}

}  // namespace strata::cpu
