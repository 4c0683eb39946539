#ifndef TESTS_PLANNER_PLAN_FIXTURE_H_
#define TESTS_PLANNER_PLAN_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "planner/capacity_plan.h"
#include "planner/public_shapes.h"

namespace strata {

inline PlannedModel PublicModel(const std::string& name,
                                DType type = DType::kBF16) {
  auto model = ModelOfShape(name, *FindPublicShape(name), type);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// 80 GB of an H100, no workspace, for what the paper measures.
inline PlanRequest PaperRequest(int64_t context, int64_t output_tokens) {
  return {.hardware = *FindHardware("h100"),
          .memory_bytes = 80'000'000'000,
          .workspace_bytes = 0,
          .kv_type = PlannedKvType::kBF16,
          .page_tokens = 16,
          .max_batched_tokens = 512,
          .context = context,
          .output_tokens = output_tokens,
          .strategies = {"full", "every=2", "every=4", "every=8"},
          .batches = {1, 4, 16}};
}

inline CapacityPlan PlanOf(const PlannedModel& model,
                           const PlanRequest& request) {
  auto plan = MakePlan(model, request);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

}  // namespace strata

#endif  // TESTS_PLANNER_PLAN_FIXTURE_H_
