#include "monitoring/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "monitoring/metrics_page.h"
#include "prometheus/registry.h"
#include "tests/monitoring/scraped_metrics.h"

namespace strata {
namespace {

constexpr int kFull = 1;
constexpr int kEvery2 = 2;
constexpr int64_t kPoolBytes = 3000 * 4096;

Metrics::Config TestConfig() {
  return {.model_name = "tiny",
          .version = "1.2.3",
          .backend = "cpu",
          .kv_format = "bf16",
          .page_tokens = 16,
          .page_bytes = 4096,
          .num_pages = 3000,
          .num_layers = 7,
          .max_model_len = 300,
          .max_sequences = 17,
          .max_queued_requests = 23};
}

class MetricsTest : public testing::Test {
 protected:
  MetricsTest() : metrics_(&registry_, TestConfig()) {
    metrics_.AddStrategy(0, "other", 0);
    metrics_.AddStrategy(kFull, "full", 1792);
    metrics_.AddStrategy(kEvery2, "every=2", 1024);
    page_.Publish(&metrics_);
  }
  ScrapedMetrics Scrape() { return ScrapedMetrics(page_.Render()); }

  prometheus::Registry registry_;
  Metrics metrics_;
  MetricsPage page_;
};

TEST_F(MetricsTest, EverySeriesIsThereFromTheStart) {
  const ScrapedMetrics scraped = Scrape();
  EXPECT_THAT(scraped.unparsed(), testing::IsEmpty());
  for (const char* name : {"strata_requests_running",
                           "strata_requests_waiting",
                           "strata_kv_cache_usage_ratio",
                           "strata_prompt_tokens_per_second",
                           "strata_generation_tokens_per_second",
                           "strata_engine_last_step_timestamp_seconds",
                           "strata_step_duration_seconds_count",
                           "vllm:num_requests_running",
                           "vllm:num_requests_waiting",
                           "vllm:kv_cache_usage_perc",
                           "vllm:prompt_tokens_total",
                           "vllm:generation_tokens_total",
                           "strata_floor_starts_total",
                           "strata_preemptions_total",
                           "vllm:num_preemptions_total",
                           "vllm:prefix_cache_queries_total",
                           "vllm:prefix_cache_hits_total",
                           "vllm:time_to_first_token_seconds_count",
                           "vllm:inter_token_latency_seconds_count",
                           "vllm:e2e_request_latency_seconds_count",
                           "vllm:request_queue_time_seconds_count",
                           "vllm:request_prefill_time_seconds_count",
                           "vllm:request_decode_time_seconds_count",
                           "vllm:request_time_per_output_token_seconds_count",
                           "vllm:request_prompt_tokens_count",
                           "vllm:request_generation_tokens_count",
                           "vllm:request_params_max_tokens_count",
                           "vllm:request_params_n_count"}) {
    EXPECT_EQ(scraped.Count(name), 1) << name;
    EXPECT_EQ(scraped.Sum(name), 0) << name;
  }
  for (const char* name :
       {"strata_prompt_tokens_total", "strata_generation_tokens_total",
        "strata_prefix_cache_queries_total", "strata_prefix_cache_hits_total",
        "strata_requests_running_by_strategy", "strata_kv_saved_bytes",
        "strata_time_to_first_token_seconds_count",
        "strata_inter_token_latency_seconds_count",
        "strata_e2e_request_latency_seconds_count",
        "strata_request_queue_time_seconds_count",
        "strata_request_prefill_time_seconds_count",
        "strata_request_decode_time_seconds_count",
        "strata_request_time_per_output_token_seconds_count"}) {
    for (const char* strategy : {"other", "full", "every=2"}) {
      const std::string label = std::string("kv_strategy=\"") + strategy + "\"";
      EXPECT_EQ(scraped.Count(name, {label}), 1) << name << label;
    }
    EXPECT_EQ(scraped.Sum(name), 0) << name;
  }
  for (const char* name : {"strata_strategy_switches_total",
                           "strata_strategy_switch_freed_bytes_total"}) {
    for (const char* cause : {"client", "planned", "pressure"}) {
      const std::string label = std::string("cause=\"") + cause + "\"";
      EXPECT_EQ(scraped.Count(name, {label}), 1) << name << label;
    }
    EXPECT_EQ(scraped.Count(name), 3) << name;
    EXPECT_EQ(scraped.Sum(name), 0) << name;
  }
  EXPECT_EQ(scraped.Count("strata_request_finished_total"), 3 * 6);
  EXPECT_EQ(scraped.Count("strata_request_rejected_total"), 5);
  EXPECT_EQ(scraped.Count("vllm:request_success_total"), 4);
  EXPECT_EQ(scraped.Sum("strata_tokens_per_second"), 0);
  EXPECT_EQ(scraped.Count("strata_tokens_per_second"), 6);
  EXPECT_EQ(scraped.Sum("strata_engine_healthy"), 1);
  EXPECT_EQ(
      scraped.Sum("strata_kv_bytes_per_token", {"kv_strategy=\"every=2\""}),
      1024);
  EXPECT_EQ(scraped.Count("strata_kv_bytes_per_token"), 2);
  EXPECT_EQ(scraped.Sum("strata_kv_cache_bytes"), kPoolBytes);
  EXPECT_EQ(scraped.Sum("strata_kv_cache_bytes", {"state=\"free\""}),
            kPoolBytes);
  EXPECT_EQ(scraped.Sum("strata_kv_pool_bytes"), kPoolBytes);
}

TEST_F(MetricsTest, DescribesWhatRuns) {
  EXPECT_EQ(Scrape().Sum("vllm:cache_config_info",
                         {"block_size=\"16\"", "num_gpu_blocks=\"428\"",
                          "cache_dtype=\"bf16\"", "model_name=\"tiny\""}),
            1);
  EXPECT_EQ(Scrape().Sum("strata_max_sequences"), 17);
  EXPECT_EQ(Scrape().Sum("strata_max_queued_requests"), 23);
  EXPECT_EQ(Scrape().Sum("strata_build_info",
                         {"version=\"1.2.3\"", "backend=\"cpu\""}),
            1);
}

TEST_F(MetricsTest, ProcessMetricsAreReadFromTheSystem) {
  const ScrapedMetrics scraped = Scrape();
  EXPECT_GT(scraped.Sum("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(scraped.Sum("process_virtual_memory_bytes"),
            scraped.Sum("process_resident_memory_bytes"));
  EXPECT_GE(scraped.Sum("process_open_fds"), 3);
  EXPECT_EQ(scraped.Count("process_cpu_seconds_total"), 1);
  const double age = absl::ToUnixSeconds(absl::Now()) -
                     scraped.Sum("process_start_time_seconds");
  EXPECT_GE(age, -2);
  EXPECT_LT(age, 3600);
}

TEST_F(MetricsTest, OneRecordCountsInBothFamilies) {
  metrics_.AddPromptTokens(kFull, 29);
  metrics_.AddPromptTokens(kEvery2, 100);
  metrics_.AddGeneratedTokens(kEvery2, 8);
  metrics_.RecordQueueTime(kFull, absl::Milliseconds(250));
  metrics_.RecordFirstToken(kFull, absl::Seconds(3), absl::Seconds(2));
  metrics_.RecordInterToken(kEvery2, absl::Milliseconds(125));
  metrics_.RecordRequest(kEvery2, {.finish = Metrics::Finish::kLength,
                                   .end_to_end = absl::Seconds(9),
                                   .decode = absl::Seconds(6),
                                   .prompt_tokens = 100,
                                   .generated_tokens = 8,
                                   .max_tokens = 4,
                                   .num_sequences = 2});
  metrics_.RecordRejection(Metrics::Rejection::kQueueFull);

  const ScrapedMetrics scraped = Scrape();
  const std::string full = "kv_strategy=\"full\"";
  const std::string every2 = "kv_strategy=\"every=2\"";
  EXPECT_EQ(scraped.Sum("strata_prompt_tokens_total", {full}), 29);
  EXPECT_EQ(scraped.Sum("strata_prompt_tokens_total", {every2}), 100);
  EXPECT_EQ(scraped.Sum("strata_generation_tokens_total", {every2}), 8);
  EXPECT_EQ(scraped.Sum("vllm:prompt_tokens_total"), 129);
  EXPECT_EQ(scraped.Sum("vllm:generation_tokens_total"), 8);
  EXPECT_NEAR(
      scraped.Sum("strata_tokens_per_second", {every2, "kind=\"prompt\""}), 10,
      1e-9);
  struct Want {
    std::string name;
    std::string strategy;
    double sum;
  };
  for (const Want& want :
       std::vector<Want>{{"request_queue_time_seconds", full, .25},
                         {"time_to_first_token_seconds", full, 3},
                         {"request_prefill_time_seconds", full, 2},
                         {"inter_token_latency_seconds", every2, .125},
                         {"e2e_request_latency_seconds", every2, 9},
                         {"request_decode_time_seconds", every2, 6},
                         {"request_time_per_output_token_seconds", every2, 2},
                         {"request_prompt_tokens", every2, 100},
                         {"request_generation_tokens", every2, 8},
                         {"request_params_max_tokens", every2, 4},
                         {"request_params_n", every2, 2}}) {
    for (const std::string prefix : {"strata_", "vllm:"}) {
      EXPECT_EQ(scraped.Sum(prefix + want.name + "_sum"), want.sum)
          << prefix << want.name;
      EXPECT_EQ(scraped.Sum(prefix + want.name + "_count"), 1)
          << prefix << want.name;
    }
    EXPECT_EQ(scraped.Sum("strata_" + want.name + "_sum", {want.strategy}),
              want.sum)
        << want.name;
  }
  EXPECT_EQ(scraped.Sum("strata_request_finished_total",
                        {every2, "finished_reason=\"length\""}),
            1);
  EXPECT_EQ(scraped.Sum("strata_request_finished_total"), 1);
  EXPECT_EQ(
      scraped.Sum("vllm:request_success_total", {"finished_reason=\"length\""}),
      1);
  EXPECT_EQ(
      scraped.Sum("strata_request_rejected_total", {"reason=\"queue_full\""}),
      1);
  EXPECT_EQ(scraped.Sum("strata_request_rejected_total"), 1);
}

TEST_F(MetricsTest, AllEarlyEndsAreAbortsForVllm) {
  for (const auto finish :
       {Metrics::Finish::kAbort, Metrics::Finish::kCancelled,
        Metrics::Finish::kDeadline, Metrics::Finish::kError,
        Metrics::Finish::kStop}) {
    Metrics::RequestRecord record;
    record.finish = finish;
    metrics_.RecordRequest(kFull, record);
  }
  const ScrapedMetrics scraped = Scrape();
  EXPECT_EQ(
      scraped.Sum("vllm:request_success_total", {"finished_reason=\"abort\""}),
      3);
  EXPECT_EQ(
      scraped.Sum("vllm:request_success_total", {"finished_reason=\"error\""}),
      1);
  EXPECT_EQ(scraped.Sum("strata_request_finished_total",
                        {"finished_reason=\"deadline\""}),
            1);
  EXPECT_EQ(scraped.Sum("vllm:request_decode_time_seconds_count"), 0)
      << "nothing was decoded";
}

TEST_F(MetricsTest, CountsSwitchesAndFreedBytesByCause) {
  using Cause = Metrics::SwitchCause;
  metrics_.RecordSwitch(Cause::kClient, 4096);
  metrics_.RecordSwitch(Cause::kPlanned, 0);
  metrics_.RecordSwitch(Cause::kPlanned, 3 * 4096);
  metrics_.RecordSwitch(Cause::kPressure, 5 * 4096);
  metrics_.RecordSwitch(Cause::kPressure, int64_t{7} << 40);
  metrics_.RecordSwitch(Cause::kPressure, 1);
  const ScrapedMetrics scraped = Scrape();
  const auto switches = [&](const std::string& cause) {
    return scraped.Sum("strata_strategy_switches_total", {cause});
  };
  EXPECT_EQ(switches("cause=\"client\""), 1);
  EXPECT_EQ(switches("cause=\"planned\""), 2);
  EXPECT_EQ(switches("cause=\"pressure\""), 3);
  const auto freed = [&](const std::string& cause) {
    return scraped.Sum("strata_strategy_switch_freed_bytes_total", {cause});
  };
  EXPECT_EQ(freed("cause=\"client\""), 4096);
  EXPECT_EQ(freed("cause=\"planned\""), 3 * 4096);
  EXPECT_EQ(freed("cause=\"pressure\""), (int64_t{7} << 40) + 5 * 4096 + 1);
}

TEST_F(MetricsTest, CountsPreemptionsInBothFamilies) {
  metrics_.RecordPreemption();
  metrics_.RecordFloorStart();
  metrics_.RecordPreemption();
  const ScrapedMetrics scraped = Scrape();
  EXPECT_EQ(scraped.Sum("strata_floor_starts_total"), 1);
  EXPECT_EQ(scraped.Sum("strata_preemptions_total"), 2);
  EXPECT_EQ(scraped.Sum("vllm:num_preemptions_total"), 2);
}

TEST_F(MetricsTest, CountsPrefixLookupsInTokensByStrategy) {
  metrics_.RecordPrefixLookup(kFull, 100, 48);
  metrics_.RecordPrefixLookup(kFull, 33, 0);
  metrics_.RecordPrefixLookup(kEvery2, 257, 256);
  metrics_.RecordPrefixLookup(99, 31, 16);  // unknown
  const ScrapedMetrics scraped = Scrape();
  struct Want {
    std::string strategy;
    double queries;
    double hits;
  };
  for (const Want& want :
       std::vector<Want>{{"kv_strategy=\"full\"", 133, 48},
                         {"kv_strategy=\"every=2\"", 257, 256},
                         {"kv_strategy=\"other\"", 31, 16}}) {
    EXPECT_EQ(scraped.Sum("strata_prefix_cache_queries_total", {want.strategy}),
              want.queries)
        << want.strategy;
    EXPECT_EQ(scraped.Sum("strata_prefix_cache_hits_total", {want.strategy}),
              want.hits)
        << want.strategy;
  }
  EXPECT_EQ(scraped.Sum("vllm:prefix_cache_queries_total"), 421);
  EXPECT_EQ(scraped.Sum("vllm:prefix_cache_hits_total"), 320);
}

TEST_F(MetricsTest, UnknownLabelsCountAsOther) {
  metrics_.AddPromptTokens(99, 1);
  metrics_.AddPromptTokens(-1, 2);
  metrics_.AddPromptTokens(1 << 20, 4);
  metrics_.AddPromptTokens(0, 8);
  EXPECT_EQ(
      Scrape().Sum("strata_prompt_tokens_total", {"kv_strategy=\"other\""}),
      15);
  metrics_.AddStrategy(1 << 20, "keep=0.5", 1);
  EXPECT_EQ(Scrape().Count("strata_prompt_tokens_total"), 3);
}

TEST_F(MetricsTest, KnownStrategyIsLeftAsItIs) {
  metrics_.AddStrategy(kFull, "prefix=3", 1);
  EXPECT_EQ(Scrape().Count("strata_prompt_tokens_total"), 3);
}

Metrics::Gauges SomeGauges(int used_pages) {
  Metrics::Gauges gauges;
  gauges.running = 5;
  gauges.waiting = 2;
  gauges.kv_used_bytes = used_pages * 4096;
  gauges.kv_reserved_bytes = 500 * 4096;
  gauges.kv_cached_bytes = 100 * 4096;
  gauges.kv_free_bytes = (2400 - used_pages) * 4096;
  gauges.strategies = {{.running = 1, .kv_used_bytes = 100 * 4096},
                       {.running = 3,
                        .kv_used_bytes = (used_pages - 100) * 4096,
                        .kv_saved_bytes = 77}};
  return gauges;
}

TEST_F(MetricsTest, KvBytesSumToThePool) {
  metrics_.SetGauges(SomeGauges(1000));
  metrics_.SetFault(Metrics::Fault::kDeviceLost);
  const ScrapedMetrics scraped = Scrape();
  EXPECT_EQ(scraped.Sum("strata_kv_cache_bytes"), kPoolBytes);
  EXPECT_EQ(scraped.Sum("strata_kv_cache_bytes", {"state=\"used\""}),
            1000 * 4096);
  EXPECT_EQ(scraped.Sum("strata_kv_cache_bytes", {"state=\"reserved\""}),
            500 * 4096);
  EXPECT_EQ(scraped.Sum("strata_kv_cache_bytes", {"state=\"cached\""}),
            100 * 4096);
  EXPECT_EQ(scraped.Sum("strata_kv_blocks"), 3000);
  EXPECT_EQ(scraped.Sum("strata_kv_cache_usage_ratio"), 0.5);
  EXPECT_EQ(scraped.Sum("vllm:kv_cache_usage_perc"), 0.5);
  EXPECT_EQ(scraped.Sum("strata_requests_running"), 5);
  EXPECT_EQ(scraped.Sum("vllm:num_requests_running"), 5);
  EXPECT_EQ(scraped.Sum("strata_requests_waiting"), 2);
  EXPECT_EQ(scraped.Sum("vllm:num_requests_waiting"), 2);
  EXPECT_EQ(scraped.Sum("strata_requests_running_by_strategy",
                        {"kv_strategy=\"full\""}),
            3);
  EXPECT_EQ(scraped.Sum("strata_kv_saved_bytes"), 77);
  EXPECT_EQ(scraped.Sum("strata_engine_healthy"), 0);
  EXPECT_EQ(scraped.Sum("strata_engine_fault", {"fault=\"device_lost\""}), 1);
  EXPECT_EQ(scraped.Sum("strata_engine_fault"), 1);
}

TEST_F(MetricsTest, ScrapeDuringAChangeSeesOneState) {
  std::atomic<bool> done = false;
  std::thread engine([&] {
    for (int used = 100; !done; used = 100 + (used + 37) % 2000) {
      metrics_.SetGauges(SomeGauges(used));
    }
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Scrape().Sum("strata_kv_cache_bytes"), kPoolBytes);
  }
  done = true;
  engine.join();
}

TEST_F(MetricsTest, RecordsStepsByPhase) {
  metrics_.RecordStep(
      {.duration = absl::Milliseconds(3), .prompt_rows = 40, .decode_rows = 5});
  const ScrapedMetrics scraped = Scrape();
  EXPECT_EQ(scraped.Sum("strata_step_duration_seconds_sum"), 0.003);
  EXPECT_EQ(scraped.Sum("strata_iteration_tokens_sum", {"phase=\"prefill\""}),
            40);
  EXPECT_EQ(scraped.Sum("strata_iteration_tokens_sum", {"phase=\"decode\""}),
            5);
  EXPECT_NEAR(scraped.Sum("strata_engine_last_step_timestamp_seconds"),
              absl::ToUnixSeconds(absl::Now()), 60);
}

TEST(MetricsPageTest, HasTheProcessMetricsAloneBeforeTheModel) {
  const ScrapedMetrics scraped{MetricsPage().Render()};
  EXPECT_EQ(scraped.Count("process_open_fds"), 1);
  EXPECT_EQ(scraped.samples().size(), 5u);
}

}  // namespace
}  // namespace strata
