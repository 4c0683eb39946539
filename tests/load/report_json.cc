#include "tests/load/report_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

void AddStatistics(const std::string& name, const Statistics& s, Json* out) {
  (*out)["mean_" + name + "_ms"] = s.mean;
  (*out)["median_" + name + "_ms"] = s.median;
  (*out)["std_" + name + "_ms"] = s.std;
  (*out)["p50_" + name + "_ms"] = s.p50;
  (*out)["p90_" + name + "_ms"] = s.p90;
  (*out)["p95_" + name + "_ms"] = s.p95;
  (*out)["p99_" + name + "_ms"] = s.p99;
}

void AddGroup(const GroupReport& group, bool with_goodput, Json* out) {
  Json& o = *out;
  o["completed"] = group.completed;
  o["failed"] = group.failed;
  o["cancelled"] = group.cancelled;
  o["expired"] = group.expired;
  o["total_input_tokens"] = group.total_input_tokens;
  o["total_output_tokens"] = group.total_output_tokens;
  o["request_throughput"] = group.PerSecond(group.completed);
  if (with_goodput) o["request_goodput"] = group.PerSecond(group.good);
  const double output = static_cast<double>(group.total_output_tokens);
  const double input = static_cast<double>(group.total_input_tokens);
  o["output_throughput"] = group.PerSecond(output);
  o["total_token_throughput"] = group.PerSecond(input + output);
  AddStatistics("ttft", group.ttft_ms, out);
  AddStatistics("tpot", group.tpot_ms, out);
  AddStatistics("itl", group.itl_ms, out);
  AddStatistics("e2el", group.e2el_ms, out);
  AddStatistics("client_queue_time", group.client_queue_time_ms, out);
  AddStatistics("ttft_including_client_queue",
                group.ttft_including_client_queue_ms, out);
  AddStatistics("e2el_including_client_queue",
                group.e2el_including_client_queue_ms, out);
  o["kv_bytes_mean"] = group.kv_bytes_mean;
  o["kv_bytes_full_mean"] = group.kv_bytes_full_mean;
  o["cached_tokens"] = group.total_cached_tokens;
  o["prefix_hit_rate"] = group.prefix_hit_rate();
  o["switches"] = group.switches;
  o["switch_freed_bytes"] = group.switch_freed_bytes;
  o["preemptions"] = group.preemptions;
  o["ended_under"] = group.ended_under;
  o["errors"] = group.errors;
  o["live_switches"] = group.live_switches;
  o["live_switches_late"] = group.live_switches_late;
  o["live_switch_errors"] = group.live_switch_errors;
}

// JSON has no infinity.
Json OrInf(double number) {
  return std::isinf(number) ? Json("inf") : Json(number);
}

void AddSamples(const LoadWatch::Seen& seen, Json* out) {
  Json& samples = (*out)["samples"] = Json::array();
  for (const LoadWatch::Sample& sample : seen.samples) {
    samples.push_back(
        {{"at_s", sample.at_s},
         {"running", sample.running},
         {"waiting", sample.waiting},
         {"kv_used_bytes", sample.kv_used_bytes},
         {"kv_cached_bytes", sample.kv_cached_bytes},
         {"generated_tokens_per_s", sample.generated_tokens_per_s},
         {"resident_bytes", sample.resident_bytes}});
  }
}

const char* OutcomeName(CallRecord::Outcome outcome) {
  switch (outcome) {
    case CallRecord::Outcome::kCompleted:
      return "completed";
    case CallRecord::Outcome::kCancelled:
      return "cancelled";
    case CallRecord::Outcome::kExpired:
      return "expired";
    case CallRecord::Outcome::kFailed:
      return "failed";
  }
  return "";
}

void AddDetails(const std::vector<CallRecord>& records,
                const std::vector<std::string>& labels, Json* out) {
  for (const char* key :
       {"input_lens", "output_lens", "ttfts", "itls", "latencies",
        "start_times", "queue_times", "errors", "strategies", "outcomes"}) {
    (*out)["details"][key] = Json::array();
  }
  Json& details = (*out)["details"];
  for (const CallRecord& record : records) {
    const std::vector<Chunk>& chunks = record.chunks;
    Json gaps = Json::array();
    for (size_t i = 1; i < chunks.size(); ++i) {
      gaps.push_back(chunks[i].at_s - chunks[i - 1].at_s);
    }
    details["input_lens"].push_back(
        record.has_usage ? record.prompt_tokens : record.planned_prompt_tokens);
    details["output_lens"].push_back(record.num_received);
    details["ttfts"].push_back(
        chunks.empty() ? 0 : chunks.front().at_s - record.start_s);
    details["itls"].push_back(std::move(gaps));
    details["latencies"].push_back(record.end_s - record.start_s);
    details["start_times"].push_back(record.start_s);
    details["queue_times"].push_back(record.start_s - record.intended_s);
    details["errors"].push_back(record.status.error_message());
    details["strategies"].push_back(labels[record.strategy]);
    details["outcomes"].push_back(OutcomeName(record.outcome()));
  }
}

void AddOptions(const LoadOptions& options, Json* out) {
  Json& o = *out;
  o["request_rate"] = OrInf(options.request_rate);
  o["burstiness"] = OrInf(options.burstiness);
  o["max_concurrency"] =
      options.concurrency > 0 ? Json(options.concurrency) : Json(nullptr);
  o["seed"] = options.seed;
  o["trace"] = options.trace.path;
  o["shared_prefix_tokens"] = options.shared_prefix_tokens;
  o["bypass_prefix_cache"] = options.bypass_prefix_cache;
  Json& goodput = o["goodput"] = Json::object();
  for (const auto& [name, limit] : options.goodput.Limits()) {
    goodput[name] = limit;
  }
}

}  // namespace

std::string ReportJson(const Report& report, const LoadOptions& options,
                       const RunFacts& facts,
                       const std::vector<CallRecord>* records) {
  Json out;
  out["date"] =
      absl::FormatTime("%Y%m%d-%H%M%S", absl::Now(), absl::LocalTimeZone());
  out["model_id"] = facts.model_id;
  out["num_prompts"] = report.total.num_calls();
  AddOptions(options, &out);
  out["duration"] = report.total.duration_s;
  AddGroup(report.total, options.goodput.any(), &out);
  out["max_output_tokens_per_s"] = report.max_output_tokens_per_s;
  out["max_concurrent_requests"] = facts.max_concurrent_requests;
  out["kv_bytes_peak"] = facts.seen.kv_bytes_peak;
  out["running_peak"] = facts.seen.running_peak;
  out["running_mean"] = facts.seen.running_mean;
  out["kv_pool_bytes"] = facts.seen.kv_pool_bytes;
  out["memory_growth_bytes"] = facts.memory_growth_bytes;
  out["cut_prompts"] = facts.num_cut_prompts;
  out["cut_outputs"] = facts.num_cut_outputs;
  out["violations"] = facts.violations;
  const std::vector<std::string> labels = options.mix.Labels();
  Json& groups = out["by_strategy"] = Json::object();
  for (size_t i = 0; i < report.by_strategy.size(); ++i) {
    Json& group = groups[labels[i]];
    group["strategy"] = report.by_strategy[i].canonical;
    AddGroup(report.by_strategy[i], options.goodput.any(), &group);
  }
  AddSamples(facts.seen, &out);
  if (records != nullptr) AddDetails(*records, labels, &out);
  // A server's text may be invalid UTF-8; a report is written all the same.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace strata
