#ifndef MONITORING_SERIES_H_
#define MONITORING_SERIES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "monitoring/metrics.h"
#include "monitoring/series_maker.h"
#include "monitoring/token_rate.h"

namespace strata {

// What is observed once or more for a request: strata_NAME by strategy, and
// vllm:NAME of all of them.
enum class Distribution {
  kFirstToken,
  kInterToken,
  kTimePerToken,
  kEndToEnd,
  kQueue,
  kPrefill,
  kDecode,
  kPromptTokens,
  kGeneratedTokens,
  kMaxTokens,
  kNumSequences,
};
inline constexpr int kNumDistributions = 11;
inline constexpr int kNumFinishes = 6;      // Metrics::Finish
inline constexpr int kNumRejections = 5;    // Metrics::Rejection
inline constexpr int kNumSwitchCauses = 3;  // Metrics::SwitchCause

enum KvState { kKvUsed, kKvReserved, kKvCached, kKvFree, kNumKvStates };

// The series of one strategy label.
struct StrategySeries {
  StrategySeries(const SeriesMaker& strata, const std::string& canonical,
                 int64_t kv_bytes_per_token, int max_model_len);

  std::array<prometheus::Histogram*, kNumDistributions> distributions;
  std::array<prometheus::Counter*, kNumFinishes> finished;
  prometheus::Counter* prompt_tokens;
  prometheus::Counter* generated_tokens;
  prometheus::Counter* prefix_queries;
  prometheus::Counter* prefix_hits;
  prometheus::Gauge* running;
  prometheus::Gauge* kv_used;
  prometheus::Gauge* kv_saved;
  prometheus::Gauge* prompt_rate;
  prometheus::Gauge* generated_rate;
  TokenRate prompt_window;
  TokenRate generated_window;
};

// The series of the whole server, in our names.
struct ServerSeries {
  ServerSeries(const SeriesMaker& strata, const Metrics::Config& config);

  std::array<prometheus::Counter*, kNumRejections> rejected;
  std::array<prometheus::Counter*, kNumSwitchCauses> switches;
  std::array<prometheus::Counter*, kNumSwitchCauses> freed_bytes;
  prometheus::Counter* floor_starts;
  prometheus::Counter* preemptions;
  // By state; null for kKvUsed, which is by strategy.
  std::array<prometheus::Gauge*, kNumKvStates> kv_bytes;
  std::array<prometheus::Gauge*, kNumKvStates> kv_blocks;
  prometheus::Gauge* running;
  prometheus::Gauge* waiting;
  prometheus::Gauge* kv_usage;
  prometheus::Gauge* prompt_rate;
  prometheus::Gauge* generated_rate;
  prometheus::Gauge* last_step;
  prometheus::Gauge* healthy;
  prometheus::Gauge* stalled;
  prometheus::Gauge* device_lost;
  prometheus::Histogram* step_duration;
  prometheus::Histogram* prompt_rows;
  prometheus::Histogram* decode_rows;
};

// The series that vLLM's dashboards and endpoint pickers read.
struct VllmSeries {
  VllmSeries(const SeriesMaker& vllm, const Metrics::Config& config);

  std::array<prometheus::Histogram*, kNumDistributions> distributions;
  std::array<prometheus::Counter*, kNumFinishes> finished;
  prometheus::Counter* prompt_tokens;
  prometheus::Counter* generated_tokens;
  prometheus::Counter* preemptions;
  prometheus::Counter* prefix_queries;
  prometheus::Counter* prefix_hits;
  prometheus::Gauge* running;
  prometheus::Gauge* waiting;
  prometheus::Gauge* kv_usage;
};

struct Metrics::Series {
  static constexpr int kMaxLabels = 1024;

  Series(prometheus::Registry* registry, const Config& config);

  void Add(int label, const std::string& canonical, int64_t kv_bytes_per_token);
  // The series of `label`, or of "other".
  StrategySeries& Of(int label) const;
  void Observe(Distribution which, int label, double value) const;
  // Sets the gauges to the latest state.
  void ShowGauges();

  prometheus::Registry* const registry;
  const Config config;
  const SeriesMaker strata;
  const SeriesMaker vllm;
  const ServerSeries server_series;
  const VllmSeries vllm_series;

  std::mutex add_mu;
  std::vector<std::unique_ptr<StrategySeries>> owned ABSL_GUARDED_BY(add_mu);
  // Into `owned`; set once.
  std::array<std::atomic<StrategySeries*>, kMaxLabels> by_label{};

  std::mutex collect_mu;  // one scrape at a time
  std::mutex latest_mu ABSL_ACQUIRED_AFTER(collect_mu);
  Gauges latest ABSL_GUARDED_BY(latest_mu);
};

}  // namespace strata

#endif  // MONITORING_SERIES_H_
