#ifndef KERNELS_CPU_ATTENTION_H_
#define KERNELS_CPU_ATTENTION_H_

#include <vector>

#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/kv_pages.h"
#include "kernels/cpu/worker.h"
#include "kernels/ops.h"

namespace strata::cpu {

// What the workers of a team share during Attention, kept between calls so that
// its memory is only allocated when a larger step than any before comes.
class AttentionScratch {
 public:
  // For teams of `num_workers` on a machine that has `isa`.
  AttentionScratch(int num_workers, Isa isa);

 private:
  friend void Attention(const AttentionArgs& args, const KvPages& pages,
                        AttentionScratch& scratch, const Worker& worker);

  const Isa isa_;
  AttentionPlan plan_;                          // written by worker 0
  std::vector<float> partials_;                 // of the plan's divided tiles
  std::vector<std::vector<float>> workspaces_;  // [num_workers]
};

// Every query head's result is computed in the same order of operations
// whatever the rest of the step, the workers and the page numbers are: online
// softmax over blocks of 64 positions counted from 0, restarted every
// kSplitTokens positions, whose results are folded together in rising order.
//
// REQUIRES: all workers of the team call it with the same arguments.
void Attention(const AttentionArgs& args, const KvPages& pages,
               AttentionScratch& scratch, const Worker& worker);

}  // namespace strata::cpu

#endif  // KERNELS_CPU_ATTENTION_H_
