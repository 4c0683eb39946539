#ifndef CORE_STRATEGY_PATH_H_
#define CORE_STRATEGY_PATH_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "core/request.h"
#include "core/sharing_strategy.h"

namespace strata {

// Why a sequence changed its strategy.
enum class SwitchCause { kClient, kPlanned, kPressure };

// Under which strategy each position of a sequence is run, hence cached: the
// one that it starts with, and switches to ever smaller sets of leaders, those
// taken and those planned.  A sequence whose pages were lost is run along the
// same path again, and so to the same tokens.
//
// Stands at one strategy of it, the current one.
class StrategyPath {
 public:
  struct Step {
    int64_t position;  // the first one under `strategy`
    SharingStrategy strategy;
    int label;  // StrategyRegistry::LabelOf(strategy)
    SwitchCause cause;
    bool taken;  // it was come to before
  };
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // The request's strategy, or its floor, with the planned switches whose
  // leaders are then a subset.  REQUIRES: a floor, if at_floor.
  StrategyPath(const Request& request, bool at_floor);

  const SharingStrategy& first() const { return steps_[0].strategy; }
  const SharingStrategy& strategy() const { return steps_[current_].strategy; }
  int label() const { return steps_[current_].label; }
  // Where the current strategy ends, or kNever.
  int64_t next_position() const {
    return current_ + 1 < steps_.size() ? steps_[current_ + 1].position
                                        : kNever;
  }
  // Goes to the next strategy.  REQUIRES: there is one.  Returns its step as it
  // was before: not yet taken, if it is new.
  Step Advance();
  // Goes back to the strategy of position 0.
  void Rewind();

  // The last strategy that was come to, also where a lost part is run again.
  const SharingStrategy& latest() const;
  // The strategy that `position` is run under.
  const SharingStrategy& StrategyAt(int64_t position) const;

  // From `position` on it is `strategy`; planned switches to the same position
  // that were not come to are dropped, and those after it whose leaders are not
  // a subset then.  Does not move to it.  REQUIRES: `position` is not before
  // the current strategy's first nor any that was come to, and
  // strategy.LeadersSubsetOf(StrategyAt(position)).
  void Insert(int64_t position, SharingStrategy strategy, int label,
              SwitchCause cause);
  // It is `strategy` from the first position on, and of the request's planned
  // switches those after `position` follow whose leaders are then a subset,
  // also if they were dropped before.  Stands at the first.
  void Restart(const Request& request, int64_t position,
               SharingStrategy strategy, int label);

  // Pages that a sequence from here on allocates, which has `num_blocks` blocks
  // and ends before position `end`: one of each leader for each block begun,
  // under the strategy in which it begins.
  int64_t PagesAhead(int64_t num_blocks, int64_t end, int page_tokens) const;

 private:
  // Adds the request's planned switches after `position`.
  void Plan(const Request& request, int64_t position);
  // Drops the steps from index `first` on that take no subset of leaders.
  void DropGrowing(size_t first);

  std::vector<Step> steps_;  // positions do not fall
  size_t current_ = 0;
};

}  // namespace strata

#endif  // CORE_STRATEGY_PATH_H_
