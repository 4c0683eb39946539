#include "server/kserve/infer_statistics.h"

#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace strata::kserve {
namespace {

void Add(absl::Duration duration, inference::StatisticDuration* sum) {
  sum->set_count(sum->count() + 1);
  sum->set_ns(sum->ns() +
              static_cast<uint64_t>(absl::ToInt64Nanoseconds(duration)));
}

}  // namespace

void InferStatistics::Record(const RequestLog& log) {
  absl::MutexLock lock(&mu_);
  inference::InferStatistics* stats = statistics_.mutable_inference_stats();
  if (!log.status.ok()) {
    Add(log.total, stats->mutable_fail());
    return;
  }
  Add(log.total, stats->mutable_success());
  Add(absl::Seconds(log.queue_seconds.value_or(0)), stats->mutable_queue());
  Add(absl::Seconds(log.prefill_seconds.value_or(0) +
                    log.decode_seconds.value_or(0)),
      stats->mutable_compute_infer());
  // Not told apart, but perf_analyzer wants all three as often.
  Add(absl::ZeroDuration(), stats->mutable_compute_input());
  Add(absl::ZeroDuration(), stats->mutable_compute_output());
  statistics_.set_last_inference(absl::ToUnixMillis(absl::Now()));
  // Of a request Triton says how large a batch it is, and how often the model
  // ran: here each is one.
  statistics_.set_inference_count(statistics_.inference_count() + 1);
  statistics_.set_execution_count(statistics_.execution_count() + 1);
}

inference::ModelStatistics InferStatistics::Get() const {
  absl::MutexLock lock(&mu_);
  return statistics_;
}

}  // namespace strata::kserve
