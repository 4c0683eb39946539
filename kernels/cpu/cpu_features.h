#ifndef KERNELS_CPU_CPU_FEATURES_H_
#define KERNELS_CPU_CPU_FEATURES_H_

#include <cstdint>

namespace strata::cpu {

// The instruction sets there are kernels for, each containing those before it.
enum class Isa : uint8_t {
  kPortable,
  kAvx2,    // AVX2, FMA, F16C
  kAvx512,  // AVX-512 F, BW, VL, DQ, VNNI, BF16
};

// The best one that this machine and its operating system support.
Isa DetectIsa();

// "portable", "avx2", "avx512".
const char* IsaName(Isa isa);

}  // namespace strata::cpu

#endif  // KERNELS_CPU_CPU_FEATURES_H_
