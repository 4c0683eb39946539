#ifndef MONITORING_SERIES_MAKER_H_
#define MONITORING_SERIES_MAKER_H_

#include <string>
#include <utility>
#include <vector>

#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/labels.h"
#include "prometheus/registry.h"

namespace strata {

// Makes series of one prefix that all carry the same constant labels.  A family
// is made with its first series, whose help text stays.  The registry owns the
// series.  Slow: series are resolved once, not when they are counted.
class SeriesMaker {
 public:
  using Labels = prometheus::Labels;

  // `registry` outlives this.
  SeriesMaker(prometheus::Registry* registry, std::string prefix,
              Labels constant_labels)
      : registry_(registry),
        prefix_(std::move(prefix)),
        constant_labels_(std::move(constant_labels)) {}

  prometheus::Counter* Counter(const std::string& name, const char* help,
                               const Labels& labels = {}) const {
    return &Family(prometheus::BuildCounter(), name, help).Add(labels);
  }
  prometheus::Gauge* Gauge(const std::string& name, const char* help,
                           const Labels& labels = {}) const {
    return &Family(prometheus::BuildGauge(), name, help).Add(labels);
  }
  prometheus::Histogram* Histogram(const std::string& name, const char* help,
                                   const std::vector<double>& buckets,
                                   const Labels& labels = {}) const {
    return &Family(prometheus::BuildHistogram(), name, help)
                .Add(labels, buckets);
  }

 private:
  template <typename T>
  prometheus::Family<T>& Family(prometheus::detail::Builder<T> builder,
                                const std::string& name,
                                const char* help) const {
    return builder.Name(prefix_ + name)
        .Help(help)
        .Labels(constant_labels_)
        .Register(*registry_);
  }

  prometheus::Registry* const registry_;
  const std::string prefix_;
  const Labels constant_labels_;
};

}  // namespace strata

#endif  // MONITORING_SERIES_MAKER_H_
