#include "core/live_strategies.h"

#include "base/check.h"

namespace strata {

const LiveStrategy* LiveStrategies::Acquire(const SharingStrategy& strategy) {
  std::unique_ptr<LiveStrategy>& live = live_[strategy.canonical()];
  if (live == nullptr) {
    if (free_numbers_.empty()) {
      free_numbers_.push_back(static_cast<int>(live_.size()) - 1);
    }
    live = std::make_unique<LiveStrategy>(
        LiveStrategy{.strategy = strategy,
                     .number = free_numbers_.back(),
                     .lineages = index_->AcquireLineages(strategy),
                     .num_holders = 0});
    free_numbers_.pop_back();
  }
  ++live->num_holders;
  return live.get();
}

void LiveStrategies::Release(const LiveStrategy* live) {
  const auto found = live_.find(live->strategy.canonical());
  STRATA_CHECK(found != live_.end() && found->second.get() == live);
  if (--found->second->num_holders > 0) return;
  index_->ReleaseLineages(live->lineages);
  free_numbers_.push_back(live->number);
  live_.erase(found);
}

}  // namespace strata
