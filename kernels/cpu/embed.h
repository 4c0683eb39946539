#ifndef KERNELS_CPU_EMBED_H_
#define KERNELS_CPU_EMBED_H_

#include "kernels/cpu/worker.h"
#include "kernels/ops.h"

namespace strata::cpu {

void Embed(const EmbedArgs& args, const Worker& worker);

}  // namespace strata::cpu

#endif  // KERNELS_CPU_EMBED_H_
