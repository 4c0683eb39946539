#ifndef CORE_STEP_PIPELINE_H_
#define CORE_STEP_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/batch_plan.h"
#include "core/live_request.h"
#include "core/transformer.h"
#include "kernels/sampling.h"

namespace strata {

// The steps on the device.  Where it computes by itself there are up to two:
// the next step is launched before the one before is waited for, so that the
// device does not idle while tokens are made text and sent.  Where the backend
// computes on the thread that calls it, there is one, done when it is launched.
//
// Owns the transformer, and of each step in flight what must live until it has
// ended.  The engine thread's.
class StepPipeline {
 public:
  struct Step {
    BatchPlan plan;
    std::vector<SampledToken> sampled;  // of the plan's wanted rows
    absl::Time begin;                   // when it was planned
    int num_prompt_rows = 0;            // of them, prompt positions
    // Requests that ended while it was in flight: the plan may point into them.
    std::vector<std::unique_ptr<LiveRequest>> ended;
  };

  explicit StepPipeline(std::unique_ptr<Transformer> transformer);
  // Waits for what is in flight.
  ~StepPipeline();

  // The step to plan and launch, for its memory.  REQUIRES: !is_full().
  Step& next() { return steps_[num_launched_ % kMaxSteps]; }
  // Starts next().  REQUIRES: its plan is not empty nor committed.
  absl::Status Launch();
  // Waits for the oldest step in flight.  It stays as it is until as many are
  // launched as there may be in flight.  REQUIRES: num_in_flight() > 0.
  absl::StatusOr<Step*> Wait();

  // Requests that have ended live on with the newest step in flight, if there
  // is one.
  void Drop(std::vector<std::unique_ptr<LiveRequest>> ended);

  int num_in_flight() const {
    return static_cast<int>(num_launched_ - num_waited_);
  }
  // Whether one must be waited for before another is launched.
  bool is_full() const {
    return num_in_flight() == transformer_->max_in_flight();
  }

 private:
  static constexpr int kMaxSteps = 2;

  const std::unique_ptr<Transformer> transformer_;
  Step steps_[kMaxSteps];  // step i is in steps_[i % kMaxSteps]
  int64_t num_launched_ = 0;
  int64_t num_waited_ = 0;
  std::vector<SampleRow> sample_rows_;
};

}  // namespace strata

#endif  // CORE_STEP_PIPELINE_H_
