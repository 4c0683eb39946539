#include "monitoring/metrics.h"

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "monitoring/series.h"
#include "prometheus/metric_family.h"

namespace strata {

Metrics::Metrics(prometheus::Registry* registry, const Config& config)
    : series_(std::make_unique<Series>(registry, config)) {}

Metrics::~Metrics() = default;

void Metrics::AddStrategy(int label, const std::string& canonical,
                          int64_t kv_bytes_per_token) {
  series_->Add(label, canonical, kv_bytes_per_token);
}

void Metrics::RecordStep(const StepRecord& step) {
  const ServerSeries& server = series_->server_series;
  server.step_duration->Observe(absl::ToDoubleSeconds(step.duration));
  server.prompt_rows->Observe(step.prompt_rows);
  server.decode_rows->Observe(step.decode_rows);
  server.last_step->SetToCurrentTime();
}

void Metrics::AddPromptTokens(int label, int64_t count) {
  StrategySeries& strategy = series_->Of(label);
  strategy.prompt_tokens->Increment(static_cast<double>(count));
  strategy.prompt_window.Add(absl::Now(), count);
  series_->vllm_series.prompt_tokens->Increment(static_cast<double>(count));
}

void Metrics::AddGeneratedTokens(int label, int64_t count) {
  StrategySeries& strategy = series_->Of(label);
  strategy.generated_tokens->Increment(static_cast<double>(count));
  strategy.generated_window.Add(absl::Now(), count);
  series_->vllm_series.generated_tokens->Increment(static_cast<double>(count));
}

void Metrics::RecordQueueTime(int label, absl::Duration time) {
  series_->Observe(Distribution::kQueue, label, absl::ToDoubleSeconds(time));
}

void Metrics::RecordFirstToken(int label, absl::Duration since_arrival,
                               absl::Duration since_scheduled) {
  series_->Observe(Distribution::kFirstToken, label,
                   absl::ToDoubleSeconds(since_arrival));
  series_->Observe(Distribution::kPrefill, label,
                   absl::ToDoubleSeconds(since_scheduled));
}

void Metrics::RecordInterToken(int label, absl::Duration gap) {
  series_->Observe(Distribution::kInterToken, label,
                   absl::ToDoubleSeconds(gap));
}

void Metrics::RecordRequest(int label, const RequestRecord& request) {
  const int finish = static_cast<int>(request.finish);
  series_->Of(label).finished[finish]->Increment();
  series_->vllm_series.finished[finish]->Increment();
  const auto observe = [&](Distribution which, double value) {
    series_->Observe(which, label, value);
  };
  observe(Distribution::kEndToEnd, absl::ToDoubleSeconds(request.end_to_end));
  observe(Distribution::kPromptTokens, request.prompt_tokens);
  observe(Distribution::kGeneratedTokens, request.generated_tokens);
  observe(Distribution::kMaxTokens, request.max_tokens);
  observe(Distribution::kNumSequences, request.num_sequences);
  if (request.generated_tokens == 0) return;
  const double decode_seconds = absl::ToDoubleSeconds(request.decode);
  observe(Distribution::kDecode, decode_seconds);
  // Samples are decoded side by side.
  const double after_first =
      static_cast<double>(request.generated_tokens) / request.num_sequences - 1;
  if (after_first > 0) {
    observe(Distribution::kTimePerToken, decode_seconds / after_first);
  }
}

void Metrics::RecordRejection(Rejection reason) {
  series_->server_series.rejected[static_cast<int>(reason)]->Increment();
}

void Metrics::RecordSwitch(SwitchCause cause, int64_t freed_bytes) {
  const ServerSeries& server = series_->server_series;
  const int i = static_cast<int>(cause);
  server.switches[i]->Increment();
  server.freed_bytes[i]->Increment(static_cast<double>(freed_bytes));
}

void Metrics::RecordFloorStart() {
  series_->server_series.floor_starts->Increment();
}

void Metrics::RecordPreemption() {
  series_->server_series.preemptions->Increment();
  series_->vllm_series.preemptions->Increment();
}

void Metrics::RecordPrefixLookup(int label, int64_t queried, int64_t hits) {
  const StrategySeries& strategy = series_->Of(label);
  strategy.prefix_queries->Increment(static_cast<double>(queried));
  strategy.prefix_hits->Increment(static_cast<double>(hits));
  const VllmSeries& vllm = series_->vllm_series;
  vllm.prefix_queries->Increment(static_cast<double>(queried));
  vllm.prefix_hits->Increment(static_cast<double>(hits));
}

void Metrics::SetGauges(const Gauges& gauges) {
  std::lock_guard lock(series_->latest_mu);
  series_->latest = gauges;
}

void Metrics::SetFault(Fault fault) {
  const ServerSeries& server = series_->server_series;
  server.healthy->Set(fault == Fault::kNone ? 1 : 0);
  server.stalled->Set(fault == Fault::kStalled ? 1 : 0);
  server.device_lost->Set(fault == Fault::kDeviceLost ? 1 : 0);
}

std::vector<prometheus::MetricFamily> Metrics::Collect() {
  std::lock_guard lock(series_->collect_mu);
  series_->ShowGauges();
  return series_->registry->Collect();
}

}  // namespace strata
