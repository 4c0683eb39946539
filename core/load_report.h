#ifndef CORE_LOAD_REPORT_H_
#define CORE_LOAD_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/kv_pool.h"
#include "core/request_table.h"
#include "core/strategy_registry.h"
#include "monitoring/metrics.h"
#include "monitoring/token_rate.h"

namespace strata {

// The state of the engine after a step.
struct LoadReport {
  struct Strategy {
    std::string label;
    int running = 0;  // requests
    int64_t kv_used_bytes = 0;
    int64_t kv_saved_bytes = 0;
  };
  int running = 0;  // requests
  int waiting = 0;
  // used + reserved + cached + free == pool
  int64_t kv_pool_bytes = 0;
  int64_t kv_used_bytes = 0;
  int64_t kv_reserved_bytes = 0;
  int64_t kv_cached_bytes = 0;
  int64_t kv_free_bytes = 0;
  int64_t kv_saved_bytes = 0;
  double prompt_tokens_per_second = 0;  // over the last 10 s
  double generated_tokens_per_second = 0;
  std::vector<Strategy> strategies;  // by label
};

// Measures the load of the engine.  The engine thread's.
class LoadMeter {
 public:
  LoadMeter(int64_t page_bytes, const StrategyRegistry* strategies)
      : page_bytes_(page_bytes), strategies_(strategies) {}

  void AddPromptRows(int64_t count, absl::Time now) { prompt_.Add(now, count); }
  void AddGenerated(int64_t count, absl::Time now) {
    generated_.Add(now, count);
  }

  LoadReport Measure(const KvPool& pool, const RequestTable& table,
                     const std::vector<Sequence*>& running, absl::Time now);

 private:
  const int64_t page_bytes_;
  const StrategyRegistry* const strategies_;
  TokenRate prompt_;
  TokenRate generated_;
};

// The same as gauges.
Metrics::Gauges ToGauges(const LoadReport& report);

}  // namespace strata

#endif  // CORE_LOAD_REPORT_H_
