#ifndef MONITORING_METRICS_PAGE_H_
#define MONITORING_METRICS_PAGE_H_

#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "monitoring/metrics.h"
#include "monitoring/process_metrics.h"

namespace strata {

// What GET /metrics answers: Prometheus' text format, version 0.0.4.  Until the
// model's metrics are published, those of the process alone.
//
// Thread-safe.
class MetricsPage {
 public:
  // `metrics` outlives this.
  void Publish(Metrics* metrics);

  std::string Render() const;

 private:
  const ProcessMetrics process_;
  mutable std::mutex mu_;
  Metrics* metrics_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace strata

#endif  // MONITORING_METRICS_PAGE_H_
