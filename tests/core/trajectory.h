#ifndef TESTS_CORE_TRAJECTORY_H_
#define TESTS_CORE_TRAJECTORY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/request.h"
#include "core/sharing_strategy.h"

namespace strata {

// What a sequence must come to, kept without the code under test: the strategy
// that each position is run under, and what its pages hold then.
//
// The content of leader layer l at position p stands for its K and V: a hash of
// the space, the tokens up to p, and for every position up to p of the map
// below l that it was first run under.  Two contents are equal just where a
// page may be shared.
class Trajectory {
 public:
  // `space` tells apart what may never be shared.
  Trajectory(const Request& request, uint64_t space);

  // Positions that were run at any time.
  int length() const { return static_cast<int>(strategies_.size()); }
  // Runs positions up to `length`; fails the test if a planned switch was due.
  void Extend(const std::vector<int32_t>& tokens, int length);

  // Of a position that was run, or will be if nothing is switched.
  const SharingStrategy& StrategyAt(int64_t position) const;
  // The first position from `begin` on that is not under StrategyAt(begin).
  int64_t EndOfStrategy(int64_t begin, int64_t end) const;

  // From length() on it is `strategy`.
  void Switch(const SharingStrategy& strategy);
  // The positions that were run are run again under `strategy`, as all later
  // ones.
  void Restart(const std::vector<int32_t>& tokens,
               const SharingStrategy& strategy);
  // Nothing was run, and the request's floor is the strategy.
  void StartAtFloor();
  // Takes the first planned switch; false if it is not that one.
  bool TakePlanned(int64_t position, const std::string& canonical);

  // Layer num_layers: what the next token is sampled from.
  uint64_t ContentAt(int position, int layer) const {
    return contents_[position * (num_layers_ + 1) + layer];
  }
  // Whether all positions up to `position` had the same map below `layer`.
  bool IsOneLineage(int position, int layer) const {
    return layer <= agreeing_[position];
  }

  // Whether it came to a position by two switches at once.  The first of them,
  // under which nothing was run, need not be forgotten.
  bool has_detour() const { return has_detour_; }

  // Pages of blocks from `num_blocks` on that begin before `end`.
  int64_t PagesAhead(int64_t num_blocks, int64_t end, int page_tokens) const;

 private:
  void PlanSwitches();
  void DropGrowing();
  void SetNow(const SharingStrategy& strategy);

  const Request* request_;
  uint64_t space_;
  int num_layers_;
  SharingStrategy now_;  // from length() on
  std::vector<std::pair<int64_t, SharingStrategy>> planned_;
  std::vector<SharingStrategy> strategies_;  // [length]
  std::vector<uint64_t> contents_;           // [length, num_layers + 1]
  std::vector<int> agreeing_;                // [length], layers
  int switched_at_ = 0;
  bool has_detour_ = false;
};

// A well mixed function of both.
uint64_t Mix(uint64_t a, uint64_t b);

}  // namespace strata

#endif  // TESTS_CORE_TRAJECTORY_H_
