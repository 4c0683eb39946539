#include "monitoring/metrics_page.h"

#include <iterator>
#include <utility>
#include <vector>

#include "prometheus/text_serializer.h"

namespace strata {

void MetricsPage::Publish(Metrics* metrics) {
  std::lock_guard lock(mu_);
  metrics_ = metrics;
}

std::string MetricsPage::Render() const {
  std::vector<prometheus::MetricFamily> families = process_.Collect();
  {
    std::lock_guard lock(mu_);
    if (metrics_ != nullptr) {
      auto ours = metrics_->Collect();
      families.insert(families.end(), std::make_move_iterator(ours.begin()),
                      std::make_move_iterator(ours.end()));
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace strata
