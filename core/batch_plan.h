#ifndef CORE_BATCH_PLAN_H_
#define CORE_BATCH_PLAN_H_

#include <cstdint>
#include <vector>

#include "core/sequence.h"

namespace strata {

// What one step runs: chunks of sequences, each under its own strategy, ordered
// by strategy so that the rows of one lie together.  A value; says nothing of
// how it was chosen.  Reused from step to step, so that it stops allocating.
struct BatchPlan {
  struct Chunk {
    Sequence* sequence;
    int num_rows;  // positions [sequence->num_cached, + num_rows) of it, their
                   // pages allocated
    int num_wanted;  // of its last rows, those whose logits are wanted: 0, 1,
                     // or all (Score)
  };
  std::vector<Chunk> chunks;
  int num_rows = 0;
  int num_wanted = 0;

  bool empty() const { return chunks.empty(); }
  void Clear() {
    chunks.clear();
    num_rows = num_wanted = 0;
  }
};

}  // namespace strata

#endif  // CORE_BATCH_PLAN_H_
