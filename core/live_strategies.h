#ifndef CORE_LIVE_STRATEGIES_H_
#define CORE_LIVE_STRATEGIES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/prefix_index.h"
#include "core/sharing_strategy.h"

namespace strata {

// A strategy that live sequences run under, once for all of them.
struct LiveStrategy {
  SharingStrategy strategy;
  int number;  // of it alone while it lives; small
  std::vector<PrefixIndex::LineageId> lineages;  // by slot
  int num_holders;
};

// The strategies of live sequences.  The engine thread's.
class LiveStrategies {
 public:
  // `index` outlives this.
  explicit LiveStrategies(PrefixIndex* index) : index_(index) {}
  LiveStrategies(const LiveStrategies&) = delete;
  LiveStrategies& operator=(const LiveStrategies&) = delete;

  // The one for `strategy`, held until Release.
  const LiveStrategy* Acquire(const SharingStrategy& strategy);
  void Release(const LiveStrategy* live);

 private:
  PrefixIndex* const index_;
  // By canonical text.
  absl::flat_hash_map<std::string, std::unique_ptr<LiveStrategy>> live_;
  std::vector<int> free_numbers_;
};

}  // namespace strata

#endif  // CORE_LIVE_STRATEGIES_H_
