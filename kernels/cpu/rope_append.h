#ifndef KERNELS_CPU_ROPE_APPEND_H_
#define KERNELS_CPU_ROPE_APPEND_H_

#include "kernels/cpu/kv_pages.h"
#include "kernels/cpu/worker.h"
#include "kernels/ops.h"

namespace strata::cpu {

// What follows the projections in QkvArgs: q_norm and rope on args.q in place;
// k_norm and rope on k; k and v into the layer's own slot of `pages`.  k and v
// are the projections of kv_rows with their biases; k is changed.  All workers
// must be past the projections.
void RopeAppend(const QkvArgs& args, int head_dim, int kv_heads,
                float* k /*[kv_rows.size(), kv_heads * head_dim]*/,
                const float* v /*[kv_rows.size(), kv_heads * head_dim]*/,
                KvPages& pages, const Worker& worker);

}  // namespace strata::cpu

#endif  // KERNELS_CPU_ROPE_APPEND_H_
