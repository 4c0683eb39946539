#ifndef PLANNER_CAPACITY_PLAN_H_
#define PLANNER_CAPACITY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/sharing_strategy.h"
#include "planner/hardware.h"
#include "planner/kv_type.h"
#include "planner/planned_model.h"
#include "planner/roofline.h"

namespace strata {

// What is asked; sizes are those of the server's flags of the same names.
struct PlanRequest {
  Hardware hardware;         // of all devices; both rates known
  int num_devices = 1;       // that compute the model together
  int64_t memory_bytes = 0;  // for weights, workspace and KV pool together
  int64_t workspace_bytes = 0;
  PlannedKvType kv_type = PlannedKvType::kBF16;
  bool fp8_weights = false;  // of floats, on a GPU
  int page_tokens = 0;
  int max_batched_tokens = 0;  // bounds the sequences of a step
  int64_t context = 0;         // tokens of each prompt
  int64_t output_tokens = 0;   // generated after it
  std::vector<std::string> strategies;
  std::vector<int> batches;
};

// What all sequences of one strategy cost.
struct StrategyPlan {
  struct Decode {
    int batch = 0;
    Estimate step;  // a token for each of them
    double TokensPerSecond() const { return batch / step.seconds; }
  };

  std::string spec;  // as it was asked for
  SharingStrategy strategy;
  int64_t kv_bytes_per_token = 0;
  int64_t kv_bytes = 0;    // of the positions of one sequence
  int64_t num_pages = 0;   // that one sequence holds at its end
  int64_t held_bytes = 0;  // their bytes
  // That the pool holds at once, each promised all its pages
  // (--admission=reserve), none sharing a prefix.
  int64_t num_sequences = 0;
  Estimate first_token = {};  // from the start of the prompt
  // At the batches asked for that the pool holds, in that order.
  std::vector<Decode> decode = {};
  // As many as a step and the pool take.  batch == 0: not one.
  Decode full = {};
};

struct CapacityPlan {
  int64_t weight_bytes = 0;  // in memory, as the backend packs them
  int64_t pool_bytes = 0;    // whole pages
  int64_t num_pages = 0;
  int64_t page_bytes = 0;
  int64_t num_positions = 0;  // of a sequence that it caches at its end
  std::vector<StrategyPlan> strategies;
};

// INVALID_ARGUMENT: a context that the model was not made for, a strategy that
// it cannot run under, weights that leave no memory.
// REQUIRES: what PlanFlags checks (planner/plan_flags.h).
absl::StatusOr<CapacityPlan> MakePlan(const PlannedModel& model,
                                      const PlanRequest& request);

// The pages of a pool of `pool_bytes`, as the server makes them.
int64_t NumPages(int64_t pool_bytes, int64_t page_bytes);

}  // namespace strata

#endif  // PLANNER_CAPACITY_PLAN_H_
