#ifndef KERNELS_CPU_PROJECTIONS_H_
#define KERNELS_CPU_PROJECTIONS_H_

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/worker.h"
#include "kernels/ops.h"

// The operations that are products with weights; see kernels/ops.h.
namespace strata::cpu {

void Linear(const LinearArgs& args, Matmul& matmul, const Worker& worker);
void GatedMlp(const GatedMlpArgs& args, Matmul& matmul, const Worker& worker);
void Head(const HeadArgs& args, Matmul& matmul, const Worker& worker);

// The projections of QkvArgs with their biases: into args.q, k and v, without
// q_norm, k_norm and rope.
void ProjectQkv(const QkvArgs& args, Matmul& matmul,
                float* k /*[kv_rows.size(), wk->rows()]*/,
                float* v /*[kv_rows.size(), wv->rows()]*/,
                const Worker& worker);

}  // namespace strata::cpu

#endif  // KERNELS_CPU_PROJECTIONS_H_
