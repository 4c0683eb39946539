#ifndef CORE_ROW_SET_H_
#define CORE_ROW_SET_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/batch_plan.h"
#include "core/sharing_strategy.h"
#include "kernels/step.h"

namespace strata {

// The rows that a forward pass still carries, as the kernels read them.  A pass
// starts with all rows of its plan and drops some after the last leader layer
// of their strategy: from there on nobody reads what they compute, unless their
// logits are wanted (the exact trailing skip).
//
// Owns its arrays; step() points into them.
class RowSet {
 public:
  // All rows of `plan`.  slot_of: [strategies, num_layers], where chunk i's
  // strategy is row strategy_of[i].
  void SetAll(const BatchPlan& plan, std::span<const int32_t> strategy_of,
              const int32_t* slot_of, int num_layers);

  // Whether some rows of this set end at `layer`: their strategy's last leader
  // is there, and their logits are not wanted.
  bool SomeEndAt(int layer) const;

  // The rows of `all` that go on through `layer`; *kept gets their numbers in
  // `all`.
  void SetKept(const RowSet& all, int layer, std::vector<int32_t>* kept);

  // *rows gets the numbers of those whose strategy has `layer` as a leader.
  void LeaderRows(int layer, std::vector<int32_t>* rows) const;

  // *rows gets the numbers of those whose logits are wanted, in order.
  void WantedRows(std::vector<int32_t>* rows) const;

  const Step& step() const { return step_; }
  int rows() const { return step_.rows(); }

 private:
  void Append(const StepChunk& chunk, const BatchPlan::Chunk& planned);
  void Finish(const int32_t* slot_of, int num_layers);

  std::vector<int32_t> positions_;
  std::vector<int32_t> chunk_of_;
  std::vector<StepChunk> chunks_;
  std::vector<BatchPlan::Chunk> planned_;  // beside chunks_
  bool some_unwanted_ = false;             // some rows' logits are not wanted
  Step step_;
};

}  // namespace strata

#endif  // CORE_ROW_SET_H_
