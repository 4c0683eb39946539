#ifndef PLANNER_ROOFLINE_H_
#define PLANNER_ROOFLINE_H_

#include <cstdint>

#include "core/model/model_config.h"
#include "core/sharing_strategy.h"
#include "planner/hardware.h"
#include "planner/model_costs.h"

namespace strata {

// What a step needs at least, whoever runs it.
struct Work {
  double bytes = 0;  // read from memory
  double flops = 0;
};

// The shortest time in which some hardware does it: a lower limit, as both
// resources are taken to be used fully and at once.
struct Estimate {
  Work work;
  double seconds = 0;
  bool is_compute_bound = false;  // else memory is what limits
};

// The part of a model that the work depends on; everything outlives it.
struct RooflineModel {
  const ModelConfig* config = nullptr;
  const ModelCosts* costs = nullptr;
  int64_t leader_bytes = 0;  // K and V of one layer and position
};

// One token for each of `batch` sequences with `num_cached` positions in the
// cache, all under `strategy`.  The weights are read once for all, without the
// K and V projections of followers; the cache is read in every layer of every
// sequence, since a follower reads its leader's: sharing saves no attention
// read.
Work DecodeWork(const RooflineModel& model, const SharingStrategy& strategy,
                int batch, int64_t num_cached);

// A prompt up to its first token, without reuse.  Followers project no K and V,
// and after the last leader's K and V only the last position goes on (the exact
// trailing skip).  Weights and cache are read once, at the least.
Work PrefillWork(const RooflineModel& model, const SharingStrategy& strategy,
                 int64_t num_prompt);

Estimate EstimateOn(const Hardware& hardware, const Work& work);

}  // namespace strata

#endif  // PLANNER_ROOFLINE_H_
