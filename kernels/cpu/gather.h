#ifndef KERNELS_CPU_GATHER_H_
#define KERNELS_CPU_GATHER_H_

#include "kernels/cpu/worker.h"
#include "kernels/ops.h"

namespace strata::cpu {

void Gather(const GatherArgs& args, const Worker& worker);

}  // namespace strata::cpu

#endif  // KERNELS_CPU_GATHER_H_
