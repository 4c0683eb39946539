#include "tests/load/capacity_run.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "client/table.h"
#include "tests/load/run.h"
#include "tests/load/runner.h"
#include "tests/load/workload.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

// Fewer calls would make the attainment a matter of luck.
constexpr int kFewestCalls = 20;

class Prober {
 public:
  Prober(const LoadOptions& options, const Mix::Item& item,
         const Connection& connection, const v1::GetModelResponse& model,
         StopButton* stop)
      : options_(options), connection_(connection), model_(model), stop_(stop) {
    options_.mix = Mix::Of(item);
  }

  absl::StatusOr<Probe> Run(double rate, int number) {
    LoadOptions options = options_;
    options.request_rate = rate;
    options.seed += static_cast<uint64_t>(number);
    absl::StrAppend(&options.cache_salt, "-", number);
    options.num_prompts = std::max(
        kFewestCalls, static_cast<int>(std::min(
                          1e7, std::ceil(rate * options.capacity.seconds))));
    STRATA_ASSIGN_OR_RETURN(const Plan plan,
                            PlanRun(options, model_, connection_));
    Runner runner(&options, &plan, &connection_);
    stop_->Attach(&runner);
    const absl::StatusOr<RunResult> result =
        RunPlan(options, plan, connection_, &runner, [](const Progress&) {});
    stop_->Attach(nullptr);
    if (!result.ok()) return result.status();
    if (stop_->pressed()) return absl::AbortedError("interrupted");
    if (!result->facts.violations.empty()) {
      return absl::AbortedError(absl::StrJoin(result->facts.violations, "; "));
    }
    return Describe(*result, rate);
  }

 private:
  Probe Describe(const RunResult& result, double rate) const {
    const GroupReport& total = result.report.total;
    const Probe probe = {
        .rate_per_s = rate,
        .attainment =
            static_cast<double>(total.good) / std::max(1, total.num_calls()),
        .p99_ttft_ms = total.ttft_including_client_queue_ms.p99,
        .p99_tpot_ms = total.tpot_ms.p99,
        .output_throughput =
            total.PerSecond(static_cast<double>(total.total_output_tokens))};
    absl::FPrintF(stderr,
                  "%s at %.3g calls/s: %.1f%% of %d calls good, TTFT p99 %.0f "
                  "ms, TPOT p99 %.1f ms\n",
                  options_.mix.Labels()[0], rate, 100 * probe.attainment,
                  total.num_calls(), probe.p99_ttft_ms, probe.p99_tpot_ms);
    return probe;
  }

  LoadOptions options_;
  const Connection& connection_;
  const v1::GetModelResponse& model_;
  StopButton* const stop_;
};

// The probe that the rate rests on, or null.
const Probe* Last(const Capacity& capacity) {
  const Probe* last = nullptr;
  for (const Probe& probe : capacity.probes) {
    if (probe.rate_per_s == capacity.rate_per_s) last = &probe;
  }
  return last;
}

}  // namespace

absl::StatusOr<Plan> PlanRun(const LoadOptions& options,
                             const v1::GetModelResponse& model,
                             const Connection& connection) {
  std::vector<TracedCall> trace;
  if (!options.trace.path.empty()) {
    STRATA_ASSIGN_OR_RETURN(trace, ReadTrace(options.trace, options.num_prompts,
                                             options.seed, model, connection));
  }
  return MakePlan(options, model, trace);
}

absl::StatusOr<std::vector<StrategyCapacity>> FindCapacities(
    const LoadOptions& options, const Connection& connection,
    const v1::GetModelResponse& model, StopButton* stop) {
  std::vector<StrategyCapacity> found;
  for (const Mix::Item& item : options.mix.items()) {
    Prober prober(options, item, connection, model, stop);
    STRATA_ASSIGN_OR_RETURN(
        Capacity capacity,
        FindCapacity(options.capacity, [&](double rate, int number) {
          return prober.Run(rate, number);
        }));
    found.push_back({item.Label(), std::move(capacity)});
  }
  return found;
}

std::string CapacityTable(const std::vector<StrategyCapacity>& found) {
  Table table({{"strategy", Table::Align::kLeft},
               {"calls/s"},
               {"good"},
               {"TTFT p99 ms"},
               {"TPOT p99 ms"},
               {"tok/s"},
               {"runs"}});
  for (const auto& [label, capacity] : found) {
    const std::string runs = absl::StrCat(capacity.probes.size());
    const Probe* probe = Last(capacity);
    if (probe == nullptr) {
      table.AddRow({label, "none", "", "", "", "", runs});
      continue;
    }
    table.AddRow({label,
                  absl::StrFormat("%s%.3g", capacity.is_bounded ? "" : ">= ",
                                  capacity.rate_per_s),
                  absl::StrFormat("%.1f%%", 100 * probe->attainment),
                  absl::StrFormat("%.0f", probe->p99_ttft_ms),
                  absl::StrFormat("%.1f", probe->p99_tpot_ms),
                  absl::StrFormat("%.1f", probe->output_throughput), runs});
  }
  return table.Render(1 << 20);
}

std::string CapacityJson(const std::vector<StrategyCapacity>& found,
                         const LoadOptions& options,
                         const std::string& model_id) {
  Json out;
  out["model_id"] = model_id;
  Json& goodput = out["goodput"] = Json::object();
  for (const auto& [name, limit] : options.goodput.Limits()) {
    goodput[name] = limit;
  }
  out["attainment"] = options.capacity.attainment;
  out["probe_seconds"] = options.capacity.seconds;
  Json& strategies = out["capacity"] = Json::array();
  for (const auto& [label, capacity] : found) {
    Json probes = Json::array();
    for (const Probe& probe : capacity.probes) {
      probes.push_back({{"request_rate", probe.rate_per_s},
                        {"attainment", probe.attainment},
                        {"p99_ttft_ms", probe.p99_ttft_ms},
                        {"p99_tpot_ms", probe.p99_tpot_ms},
                        {"output_throughput", probe.output_throughput},
                        {"is_confirmation", probe.is_confirmation}});
    }
    strategies.push_back({{"strategy", label},
                          {"request_rate", capacity.rate_per_s},
                          {"is_bounded", capacity.is_bounded},
                          {"probes", std::move(probes)}});
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace strata
