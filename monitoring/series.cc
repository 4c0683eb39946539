#include "monitoring/series.h"

#include <iterator>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "monitoring/buckets.h"

namespace strata {
namespace {

using prometheus::Labels;

enum class Scale { kFirstToken, kToken, kRequest, kTokenCount, kSmallCount };
struct DistributionSpec {
  const char* name;
  const char* help;
  Scale scale;
};
constexpr DistributionSpec kDistributions[] = {
    {"time_to_first_token_seconds", "Arrival to first token.",
     Scale::kFirstToken},
    {"inter_token_latency_seconds", "Between two tokens of a sequence.",
     Scale::kToken},
    {"request_time_per_output_token_seconds",
     "Mean time of a request's tokens after the first.", Scale::kToken},
    {"e2e_request_latency_seconds", "Arrival to end.", Scale::kRequest},
    {"request_queue_time_seconds", "Arrival to first scheduled.",
     Scale::kRequest},
    {"request_prefill_time_seconds", "First scheduled to first token.",
     Scale::kRequest},
    {"request_decode_time_seconds", "First token to last.", Scale::kRequest},
    {"request_prompt_tokens", "Prompt tokens of a request.",
     Scale::kTokenCount},
    {"request_generation_tokens", "Generated tokens of a request.",
     Scale::kTokenCount},
    {"request_params_max_tokens", "Most tokens that a sample may generate.",
     Scale::kTokenCount},
    {"request_params_n", "Samples of a request.", Scale::kSmallCount},
};
static_assert(std::size(kDistributions) == kNumDistributions);

// By Metrics::Finish.
constexpr const char* kFinishNames[] = {"stop",      "length",   "abort",
                                        "cancelled", "deadline", "error"};
static_assert(std::size(kFinishNames) == kNumFinishes);
// vLLM has one name for every end before the text's own.
constexpr const char* kVllmFinishNames[] = {"stop",  "length", "abort",
                                            "abort", "abort",  "error"};
static_assert(std::size(kVllmFinishNames) == kNumFinishes);
// By Metrics::Rejection.
constexpr const char* kRejectionNames[] = {"queue_full", "never_fits",
                                           "invalid", "draining", "no_access"};
static_assert(std::size(kRejectionNames) == kNumRejections);
// By Metrics::SwitchCause.
constexpr const char* kSwitchCauseNames[] = {"client", "planned", "pressure"};
static_assert(std::size(kSwitchCauseNames) == kNumSwitchCauses);

constexpr const char* kKvStateNames[] = {"used", "reserved", "cached", "free"};
static_assert(std::size(kKvStateNames) == kNumKvStates);
constexpr char kKvBytesName[] = "kv_cache_bytes";
constexpr char kKvBytesHelp[] =
    "Bytes of the KV pool by state, the used ones by strategy too; all series "
    "sum to the pool.";
constexpr char kPreemptionsHelp[] =
    "Times that a sequence lost its pages to others.";
constexpr char kPrefixQueriesHelp[] =
    "Prompt tokens looked up in the prefix cache, once a sequence.";
constexpr char kPrefixHitsHelp[] = "Prompt tokens found in the prefix cache.";
constexpr char kRateHelp[] = "Tokens by kind and strategy, over the last 10 s.";

std::vector<double> Buckets(Scale scale, int max_model_len) {
  switch (scale) {
    case Scale::kFirstToken:
      return FirstTokenSeconds();
    case Scale::kToken:
      return TokenSeconds();
    case Scale::kRequest:
      return RequestSeconds();
    case Scale::kTokenCount:
      return TokenCounts(max_model_len);
    case Scale::kSmallCount:
      break;
  }
  return {1, 2, 5, 10, 20, 50, 100};
}

std::array<prometheus::Histogram*, kNumDistributions> MakeDistributions(
    const SeriesMaker& maker, int max_model_len, const Labels& labels) {
  std::array<prometheus::Histogram*, kNumDistributions> made;
  for (int i = 0; i < kNumDistributions; ++i) {
    const DistributionSpec& spec = kDistributions[i];
    made[i] = maker.Histogram(spec.name, spec.help,
                              Buckets(spec.scale, max_model_len), labels);
  }
  return made;
}

// `labels` and one more.
Labels With(Labels labels, const char* name, const char* value) {
  labels[name] = value;
  return labels;
}

double PoolBytes(const Metrics::Config& config) {
  return static_cast<double>(config.num_pages * config.page_bytes);
}

}  // namespace

StrategySeries::StrategySeries(const SeriesMaker& strata,
                               const std::string& canonical,
                               int64_t kv_bytes_per_token, int max_model_len) {
  const Labels labels = {{"kv_strategy", canonical}};
  distributions = MakeDistributions(strata, max_model_len, labels);
  for (int i = 0; i < kNumFinishes; ++i) {
    finished[i] = strata.Counter(
        "request_finished_total", "Requests that ended, by reason.",
        With(labels, "finished_reason", kFinishNames[i]));
  }
  prompt_tokens = strata.Counter(
      "prompt_tokens_total",
      "Prompt tokens of requests whose prompt was run, cached ones included.",
      labels);
  generated_tokens =
      strata.Counter("generation_tokens_total", "Tokens generated.", labels);
  prefix_queries =
      strata.Counter("prefix_cache_queries_total", kPrefixQueriesHelp, labels);
  prefix_hits =
      strata.Counter("prefix_cache_hits_total", kPrefixHitsHelp, labels);
  running = strata.Gauge("requests_running_by_strategy",
                         "Requests that run, by strategy.", labels);
  kv_used = strata.Gauge(kKvBytesName, kKvBytesHelp,
                         With(labels, "state", kKvStateNames[kKvUsed]));
  kv_saved = strata.Gauge(
      "kv_saved_bytes",
      "What live requests would hold more under the strategy full.", labels);
  prompt_rate = strata.Gauge("tokens_per_second", kRateHelp,
                             With(labels, "kind", "prompt"));
  generated_rate = strata.Gauge("tokens_per_second", kRateHelp,
                                With(labels, "kind", "generation"));
  if (kv_bytes_per_token > 0) {
    strata
        .Gauge("kv_bytes_per_token",
               "KV bytes that one position of a sequence holds.", labels)
        ->Set(static_cast<double>(kv_bytes_per_token));
  }
}

ServerSeries::ServerSeries(const SeriesMaker& strata,
                           const Metrics::Config& config) {
  for (int i = 0; i < kNumRejections; ++i) {
    rejected[i] = strata.Counter("request_rejected_total",
                                 "Calls that were refused, by reason.",
                                 {{"reason", kRejectionNames[i]}});
  }
  for (int i = 0; i < kNumSwitchCauses; ++i) {
    const Labels labels = {{"cause", kSwitchCauseNames[i]}};
    switches[i] =
        strata.Counter("strategy_switches_total",
                       "Changes of a sequence's strategy, by cause.", labels);
    freed_bytes[i] = strata.Counter(
        "strategy_switch_freed_bytes_total",
        "KV bytes that changes of strategy gave back, by cause.", labels);
  }
  floor_starts = strata.Counter(
      "floor_starts_total",
      "Sequences admitted under their request's floor instead of its strategy; "
      "a change of strategy it is not.");
  preemptions = strata.Counter("preemptions_total", kPreemptionsHelp);
  kv_bytes[kKvUsed] = nullptr;
  for (int i = 0; i < kNumKvStates; ++i) {
    const Labels labels = {{"state", kKvStateNames[i]}};
    if (i != kKvUsed) {
      kv_bytes[i] = strata.Gauge(kKvBytesName, kKvBytesHelp, labels);
    }
    kv_blocks[i] = strata.Gauge(
        "kv_blocks", "Pages of the KV pool by state, each of one leader layer.",
        labels);
  }
  strata.Gauge("kv_pool_bytes", "Bytes of the KV pool.")
      ->Set(PoolBytes(config));
  running = strata.Gauge("requests_running", "Requests that run.");
  waiting = strata.Gauge("requests_waiting", "Requests that wait.");
  strata.Gauge("max_sequences", "Most sequences that run at once.")
      ->Set(config.max_sequences);
  strata.Gauge("max_queued_requests", "Most requests that wait.")
      ->Set(config.max_queued_requests);
  kv_usage = strata.Gauge("kv_cache_usage_ratio",
                          "Share of the KV pool used or reserved, 0 to 1.");
  prompt_rate = strata.Gauge(
      "prompt_tokens_per_second",
      "Prompt tokens run, over the last 10 s; cached ones are not.");
  generated_rate = strata.Gauge("generation_tokens_per_second",
                                "Tokens generated, over the last 10 s.");
  last_step = strata.Gauge("engine_last_step_timestamp_seconds",
                           "End of the latest step, Unix time; 0: none yet.");
  healthy =
      strata.Gauge("engine_healthy", "1 while the engine's loop is alive.");
  healthy->Set(1);
  constexpr char kFaultHelp[] = "1 while the engine has this fault.";
  stalled = strata.Gauge("engine_fault", kFaultHelp, {{"fault", "stalled"}});
  device_lost =
      strata.Gauge("engine_fault", kFaultHelp, {{"fault", "device_lost"}});
  step_duration = strata.Histogram("step_duration_seconds",
                                   "Time from the planning of a step, or the end "
                                   "of the one before, to its end.",
                                   StepSeconds());
  constexpr char kRowsHelp[] = "Rows of a step, by phase.";
  prompt_rows = strata.Histogram("iteration_tokens", kRowsHelp, StepRows(),
                                 {{"phase", "prefill"}});
  decode_rows = strata.Histogram("iteration_tokens", kRowsHelp, StepRows(),
                                 {{"phase", "decode"}});
  strata
      .Gauge("build_info", "What runs; always 1.",
             {{"version", config.version}, {"backend", config.backend}})
      ->Set(1);
}

VllmSeries::VllmSeries(const SeriesMaker& vllm, const Metrics::Config& config) {
  distributions = MakeDistributions(vllm, config.max_model_len, {});
  for (int i = 0; i < kNumFinishes; ++i) {
    finished[i] =
        vllm.Counter("request_success_total", "Requests that ended, by reason.",
                     {{"finished_reason", kVllmFinishNames[i]}});
  }
  prompt_tokens = vllm.Counter(
      "prompt_tokens_total",
      "Prompt tokens of requests whose prompt was run, cached ones included.");
  generated_tokens =
      vllm.Counter("generation_tokens_total", "Tokens generated.");
  preemptions = vllm.Counter("num_preemptions_total", kPreemptionsHelp);
  prefix_queries =
      vllm.Counter("prefix_cache_queries_total", kPrefixQueriesHelp);
  prefix_hits = vllm.Counter("prefix_cache_hits_total", kPrefixHitsHelp);
  running = vllm.Gauge("num_requests_running", "Requests that run.");
  waiting = vllm.Gauge("num_requests_waiting", "Requests that wait.");
  kv_usage = vllm.Gauge("kv_cache_usage_perc",
                        "Share of the KV pool used or reserved, 0 to 1.");
  // A block of vLLM is of all layers, as a column of pages is under `full`.
  const int64_t num_blocks = config.num_pages / config.num_layers;
  vllm.Gauge("cache_config_info",
             "The KV pool in blocks of all layers; always 1.",
             {{"block_size", std::to_string(config.page_tokens)},
              {"num_gpu_blocks", std::to_string(num_blocks)},
              {"cache_dtype", config.kv_format}})
      ->Set(1);
}

Metrics::Series::Series(prometheus::Registry* registry, const Config& config)
    : registry(registry),
      config(config),
      strata(registry, "strata_", {{"model_name", config.model_name}}),
      vllm(registry,
           "vllm:", {{"model_name", config.model_name}, {"engine", "0"}}),
      server_series(strata, config),
      vllm_series(vllm, config) {
  Add(0, "other", 0);
  latest.kv_free_bytes = config.num_pages * config.page_bytes;
}

void Metrics::Series::Add(int label, const std::string& canonical,
                          int64_t kv_bytes_per_token) {
  std::lock_guard lock(add_mu);
  if (label < 0 || label >= kMaxLabels || by_label[label] != nullptr) return;
  owned.push_back(std::make_unique<StrategySeries>(
      strata, canonical, kv_bytes_per_token, config.max_model_len));
  by_label[label] = owned.back().get();
}

StrategySeries& Metrics::Series::Of(int label) const {
  StrategySeries* series =
      label > 0 && label < kMaxLabels ? by_label[label].load() : nullptr;
  return series != nullptr ? *series : *by_label[0].load();
}

void Metrics::Series::Observe(Distribution which, int label,
                              double value) const {
  const int i = static_cast<int>(which);
  Of(label).distributions[i]->Observe(value);
  vllm_series.distributions[i]->Observe(value);
}

void Metrics::Series::ShowGauges() {
  Gauges shown;
  {
    std::lock_guard lock(latest_mu);
    shown = latest;
  }
  const int64_t kv_bytes[kNumKvStates] = {
      shown.kv_used_bytes, shown.kv_reserved_bytes, shown.kv_cached_bytes,
      shown.kv_free_bytes};
  for (int i = 0; i < kNumKvStates; ++i) {
    if (i != kKvUsed) server_series.kv_bytes[i]->Set(kv_bytes[i]);
    server_series.kv_blocks[i]->Set(kv_bytes[i] / config.page_bytes);
  }
  const double usage =
      (shown.kv_used_bytes + shown.kv_reserved_bytes) / PoolBytes(config);
  server_series.kv_usage->Set(usage);
  vllm_series.kv_usage->Set(usage);
  server_series.running->Set(shown.running);
  vllm_series.running->Set(shown.running);
  server_series.waiting->Set(shown.waiting);
  vllm_series.waiting->Set(shown.waiting);
  server_series.prompt_rate->Set(shown.prompt_tokens_per_second);
  server_series.generated_rate->Set(shown.generated_tokens_per_second);

  const absl::Time now = absl::Now();
  shown.strategies.resize(kMaxLabels);
  for (int label = 0; label < kMaxLabels; ++label) {
    const StrategySeries* series = by_label[label].load();
    if (series == nullptr) continue;
    const StrategyGauges& gauges = shown.strategies[label];
    series->running->Set(gauges.running);
    series->kv_used->Set(gauges.kv_used_bytes);
    series->kv_saved->Set(gauges.kv_saved_bytes);
    series->prompt_rate->Set(series->prompt_window.PerSecond(now));
    series->generated_rate->Set(series->generated_window.PerSecond(now));
  }
}

}  // namespace strata
