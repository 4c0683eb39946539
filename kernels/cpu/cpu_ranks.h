#ifndef KERNELS_CPU_CPU_RANKS_H_
#define KERNELS_CPU_CPU_RANKS_H_

#include <memory>

#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"

namespace strata::cpu {

// A CpuBackend, or `num_ranks` of them that compute a model together, each on
// its share of options.num_threads and at least on one thread.  On one machine
// that is no gain: it is how a split for GPUs is tested.
// REQUIRES: num_ranks > 0; options.collective is null.
std::unique_ptr<Backend> MakeCpuRanks(const CpuOptions& options, int num_ranks);

}  // namespace strata::cpu

#endif  // KERNELS_CPU_CPU_RANKS_H_
