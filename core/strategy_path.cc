#include "core/strategy_path.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace strata {

StrategyPath::StrategyPath(const Request& request, bool at_floor) {
  STRATA_CHECK(!at_floor || request.floor.has_value());
  steps_.push_back(
      {.position = 0,
       .strategy = at_floor ? *request.floor : request.strategy,
       .label = at_floor ? request.floor_label : request.strategy_label,
       .cause = SwitchCause::kClient,
       .taken = true});
  Plan(request, 0);
}

StrategyPath::Step StrategyPath::Advance() {
  STRATA_CHECK(current_ + 1 < steps_.size());
  Step& step = steps_[++current_];
  Step before = step;
  step.taken = true;
  return before;
}

void StrategyPath::Rewind() {
  current_ = 0;
  while (next_position() == 0) ++current_;
}

const SharingStrategy& StrategyPath::latest() const {
  size_t i = current_;
  while (i + 1 < steps_.size() && steps_[i + 1].taken) ++i;
  return steps_[i].strategy;
}

const SharingStrategy& StrategyPath::StrategyAt(int64_t position) const {
  size_t i = current_;
  while (i + 1 < steps_.size() && steps_[i + 1].position <= position) ++i;
  return steps_[i].strategy;
}

void StrategyPath::Insert(int64_t position, SharingStrategy strategy, int label,
                          SwitchCause cause) {
  STRATA_CHECK(position >= steps_[current_].position);
  STRATA_CHECK(strategy.LeadersSubsetOf(StrategyAt(position)));
  size_t i = current_ + 1;
  while (i < steps_.size() && steps_[i].position <= position) {
    if (steps_[i].taken) {
      ++i;
    } else {
      steps_.erase(steps_.begin() + i);  // nothing would be run under it
    }
  }
  steps_.insert(steps_.begin() + i, {.position = position,
                                     .strategy = std::move(strategy),
                                     .label = label,
                                     .cause = cause,
                                     .taken = true});
  DropGrowing(i + 1);
}

void StrategyPath::Restart(const Request& request, int64_t position,
                           SharingStrategy strategy, int label) {
  steps_.clear();
  steps_.push_back({.position = 0,
                    .strategy = std::move(strategy),
                    .label = label,
                    .cause = SwitchCause::kClient,
                    .taken = true});
  current_ = 0;
  Plan(request, position);
}

int64_t StrategyPath::PagesAhead(int64_t num_blocks, int64_t end,
                                 int page_tokens) const {
  int64_t num_pages = 0;
  for (size_t i = current_; i < steps_.size(); ++i) {
    const bool last = i + 1 == steps_.size() || steps_[i + 1].position >= end;
    const int64_t until = last ? end : steps_[i + 1].position;
    const int64_t blocks = (until + page_tokens - 1) / page_tokens;
    if (blocks > num_blocks) {
      num_pages += steps_[i].strategy.num_leaders() * (blocks - num_blocks);
      num_blocks = blocks;
    }
    if (last) break;
  }
  return num_pages;
}

void StrategyPath::Plan(const Request& request, int64_t position) {
  const int64_t num_prompt = static_cast<int64_t>(request.prompt.size());
  for (const PlannedSwitch& planned : request.switches) {
    if (num_prompt + planned.after_generated <= position) continue;
    steps_.push_back({.position = num_prompt + planned.after_generated,
                      .strategy = planned.strategy,
                      .label = planned.strategy_label,
                      .cause = SwitchCause::kPlanned,
                      .taken = false});
  }
  DropGrowing(1);
}

void StrategyPath::DropGrowing(size_t first) {
  size_t kept = first;
  for (size_t i = first; i < steps_.size(); ++i) {
    const SharingStrategy& before = steps_[kept - 1].strategy;
    if (!steps_[i].strategy.LeadersSubsetOf(before)) continue;
    if (!steps_[i].taken && steps_[i].strategy == before) continue;
    if (kept != i) steps_[kept] = steps_[i];
    ++kept;
  }
  steps_.erase(steps_.begin() + kept, steps_.end());
}

}  // namespace strata
