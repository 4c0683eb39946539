#include "kernels/cpu/tile_kernels.h"

namespace strata::cpu {

const TileKernels& TileKernelsFor(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return Avx512TileKernels();
  if (isa == Isa::kAvx2) return Avx2TileKernels();
#endif
  return PortableTileKernels();
}

}  // namespace strata::cpu
