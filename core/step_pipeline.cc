#include "core/step_pipeline.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "core/sample_rows.h"

namespace strata {

StepPipeline::StepPipeline(std::unique_ptr<Transformer> transformer)
    : transformer_(std::move(transformer)) {
  STRATA_CHECK(transformer_->max_in_flight() <= kMaxSteps);
}

StepPipeline::~StepPipeline() {
  while (num_in_flight() > 0 && Wait().ok()) {
  }
}

absl::Status StepPipeline::Launch() {
  STRATA_CHECK(!is_full());
  Step& step = next();
  STRATA_CHECK(!step.plan.empty());
  step.num_prompt_rows = 0;
  for (const BatchPlan::Chunk& chunk : step.plan.chunks) {
    const Sequence& sequence = *chunk.sequence;
    step.num_prompt_rows += std::clamp(
        sequence.num_prompt() - sequence.num_cached, 0, chunk.num_rows);
  }
  MakeSampleRows(step.plan, &sample_rows_);
  ++num_launched_;
  return transformer_->Submit(step.plan, sample_rows_, &step.sampled);
}

absl::StatusOr<StepPipeline::Step*> StepPipeline::Wait() {
  STRATA_CHECK(num_in_flight() > 0);
  Step& step = steps_[num_waited_++ % kMaxSteps];
  STRATA_RETURN_IF_ERROR(transformer_->Wait());
  return &step;
}

void StepPipeline::Drop(std::vector<std::unique_ptr<LiveRequest>> ended) {
  if (num_in_flight() == 0) return;
  auto& kept = steps_[(num_launched_ - 1) % kMaxSteps].ended;
  kept.insert(kept.end(), std::make_move_iterator(ended.begin()),
              std::make_move_iterator(ended.end()));
}

}  // namespace strata
