#include "tests/load/report_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

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
}

}  // namespace

std::string ReportJson(const Report& report, const LoadOptions& options,
                       const RunFacts& facts) {
  Json out;
  out["model_id"] = facts.model_id;
  out["num_prompts"] = options.num_prompts;
  if (std::isinf(options.request_rate)) {
    out["request_rate"] = "inf";
  } else {
    out["request_rate"] = options.request_rate;
  }
  out["burstiness"] = options.burstiness;
  out["max_concurrency"] =
      options.concurrency > 0 ? Json(options.concurrency) : Json(nullptr);
  out["seed"] = options.seed;
  out["shared_prefix_tokens"] = options.shared_prefix_tokens;
  out["bypass_prefix_cache"] = options.bypass_prefix_cache;
  out["duration"] = report.total.duration_s;
  AddGroup(report.total, options.goodput.any(), &out);
  out["max_output_tokens_per_s"] = report.max_output_tokens_per_s;
  out["max_concurrent_requests"] = facts.max_concurrent_requests;
  out["kv_bytes_peak"] = facts.seen.kv_bytes_peak;
  out["running_peak"] = facts.seen.running_peak;
  out["running_mean"] = facts.seen.running_mean;
  out["violations"] = facts.violations;
  const std::vector<std::string> labels = options.mix.Labels();
  Json& groups = out["by_strategy"] = Json::object();
  for (size_t i = 0; i < report.by_strategy.size(); ++i) {
    Json& group = groups[labels[i]];
    group["strategy"] = report.by_strategy[i].canonical;
    AddGroup(report.by_strategy[i], options.goodput.any(), &group);
  }
  // A server's text may be invalid UTF-8; a report is written all the same.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace strata
