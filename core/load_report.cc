#include "core/load_report.h"

namespace strata {

LoadReport LoadMeter::Measure(const KvPool& pool, const RequestTable& table,
                              const std::vector<Sequence*>& running,
                              absl::Time now) {
  LoadReport report;
  report.running = table.num_running();
  report.waiting = table.num_waiting();
  report.kv_pool_bytes = pool.num_pages() * page_bytes_;
  report.kv_used_bytes = pool.num_used() * page_bytes_;
  report.kv_reserved_bytes = pool.num_reserved() * page_bytes_;
  report.kv_cached_bytes = pool.num_cached() * page_bytes_;
  report.kv_free_bytes = pool.num_free() * page_bytes_;
  report.prompt_tokens_per_second = prompt_.PerSecond(now);
  report.generated_tokens_per_second = generated_.PerSecond(now);
  for (std::string& label : strategies_->labels()) {
    const int index = static_cast<int>(report.strategies.size());
    report.strategies.push_back(
        {.label = std::move(label),
         .running = table.num_running(index),
         .kv_used_bytes = pool.num_used(index) * page_bytes_});
  }
  for (const Sequence* sequence : running) {
    const int64_t followers =
        sequence->strategy.num_layers() - sequence->strategy.num_leaders();
    const int64_t saved =
        followers * sequence->pages.num_blocks() * page_bytes_;
    report.kv_saved_bytes += saved;
    report.strategies[sequence->strategy_label].kv_saved_bytes += saved;
  }
  return report;
}

Metrics::Gauges ToGauges(const LoadReport& report) {
  Metrics::Gauges gauges;
  gauges.running = report.running;
  gauges.waiting = report.waiting;
  gauges.kv_used_bytes = report.kv_used_bytes;
  gauges.kv_reserved_bytes = report.kv_reserved_bytes;
  gauges.kv_cached_bytes = report.kv_cached_bytes;
  gauges.kv_free_bytes = report.kv_free_bytes;
  gauges.prompt_tokens_per_second = report.prompt_tokens_per_second;
  gauges.generated_tokens_per_second = report.generated_tokens_per_second;
  for (const LoadReport::Strategy& strategy : report.strategies) {
    gauges.strategies.push_back({.running = strategy.running,
                                 .kv_used_bytes = strategy.kv_used_bytes,
                                 .kv_saved_bytes = strategy.kv_saved_bytes});
  }
  return gauges;
}

}  // namespace strata
