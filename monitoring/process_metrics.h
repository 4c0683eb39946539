#ifndef MONITORING_PROCESS_METRICS_H_
#define MONITORING_PROCESS_METRICS_H_

#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace strata {

// The process_* metrics that Prometheus' own client libraries export, read from
// /proc when they are asked for.  What cannot be read is left out.
//
// Thread-safe.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace strata

#endif  // MONITORING_PROCESS_METRICS_H_
