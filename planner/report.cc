#include "planner/report.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/table.h"
#include "client/text_format.h"

namespace strata {
namespace {

constexpr int kWidth = 200;  // no column is cut

constexpr char kNote[] =
    "\nAn estimate: upper limits, not measurements.  tok/s is that of all "
    "sequences together, TTFT the time to\nthe first token of one prompt; m: "
    "memory limits it, c: compute.  A decode step reads the weights once and,\n"
    "for every sequence, the cache in every layer: sharing saves memory and "
    "the K and V projections of followers,\nnot the reads of attention.\n";

std::string MiB(int64_t num_bytes) {
  return absl::StrFormat("%.1f MiB", num_bytes / 1048576.0);
}

std::string GB(int64_t num_bytes) {
  return absl::StrFormat("%s (%.4g GB)", FormatBytes(num_bytes),
                         num_bytes / 1e9);
}

const char* Limit(const Estimate& estimate) {
  return estimate.is_compute_bound ? "c" : "m";
}

std::string Seconds(const Estimate& estimate) {
  const bool is_short = estimate.seconds < 1;
  return absl::StrFormat("%.3g %s %s", estimate.seconds * (is_short ? 1e3 : 1),
                         is_short ? "ms" : "s", Limit(estimate));
}

std::string TokensPerSecond(const StrategyPlan::Decode& decode) {
  const double rate = decode.TokensPerSecond();
  const int decimals = rate < 100 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, rate, Limit(decode.step));
}

std::string Cell(const StrategyPlan& row, int batch) {
  for (const StrategyPlan::Decode& decode : row.decode) {
    if (decode.batch == batch) return TokensPerSecond(decode);
  }
  return "-";
}

std::string Rate(double value) {
  return value < 1e4 ? absl::StrFormat("%.4g", value)
                     : absl::StrFormat("%.0f", value);
}

std::string Head(const PlannedModel& model, const PlanRequest& request,
                 const CapacityPlan& plan) {
  const ModelConfig& c = model.checkpoint.config;
  const Hardware& hardware = request.hardware;
  std::string text = absl::StrFormat(
      "model    %s: %d layers of %d, %d query and %d KV heads of %d, %.3g "
      "billion parameters, %s, %s\n",
      OneLine(model.name), c.num_layers, c.hidden_size, c.num_heads,
      c.num_kv_heads, c.head_dim, NumParameters(model) / 1e9,
      model.checkpoint.weight_format, GB(model.checkpoint.weight_bytes));
  absl::StrAppendFormat(
      &text, "device   %s: reads %s GB/s, computes %s TFLOP/s\n",
      hardware.description, Rate(hardware.read_bytes_per_second / 1e9),
      Rate(hardware.flops_per_second / 1e12));
  absl::StrAppendFormat(
      &text, "memory   %s = weights %s%s + workspace %s + KV cache %s\n",
      GB(request.memory_bytes), FormatBytes(plan.weight_bytes),
      request.fp8_weights ? " (fp8)" : "", FormatBytes(request.workspace_bytes),
      GB(request.memory_bytes - plan.weight_bytes - request.workspace_bytes));
  absl::StrAppendFormat(
      &text,
      "KV cache %d pages of %s: K and V (%s) of one layer, %d positions\n",
      plan.num_pages, FormatBytes(plan.page_bytes), NameOf(request.kv_type),
      request.page_tokens);
  absl::StrAppendFormat(&text,
                        "request  a prompt of %d tokens, %d generated: %d "
                        "positions in the cache\n",
                        request.context, request.output_tokens,
                        plan.num_positions);
  return text;
}

// The server's flags for this plan.
std::string ServeLine(const PlanRequest& request, const CapacityPlan& plan) {
  int64_t most = 1;
  for (const StrategyPlan& row : plan.strategies) {
    most = std::max<int64_t>(most, row.full.batch);
  }
  most = std::min<int64_t>(most, 4096);  // what --max_sequences allows
  return absl::StrCat(
      "\nTo serve so: ./strata serve --model=PATH --backend=",
      request.hardware.is_gpu ? "cuda" : "cpu",
      request.kv_type == PlannedKvType::kF32   ? " --precision=f32"
      : request.kv_type == PlannedKvType::kFp8 ? " --kv_type=fp8"
                                               : "",
      request.fp8_weights ? " --weight_type=fp8" : "",
      request.num_devices > 1
          ? absl::StrCat(" --tensor_parallel=", request.num_devices)
          : "",
      " --kv_memory=", plan.pool_bytes, " --page_tokens=", request.page_tokens,
      " --max_sequences=", most,
      " --max_batched_tokens=", request.max_batched_tokens, "\n");
}

}  // namespace

std::string PlanText(const PlannedModel& model, const PlanRequest& request,
                     const CapacityPlan& plan) {
  std::vector<Table::Column> columns = {{"strategy", Table::Align::kLeft},
                                        {"leaders"},
                                        {"KV/token"},
                                        {"KV/sequence"},
                                        {"sequences"},
                                        {"TTFT"}};
  for (const int batch : request.batches) {
    columns.push_back({absl::StrCat("tok/s x", batch)});
  }
  columns.push_back({"tok/s, all"});
  Table table(std::move(columns));
  for (const StrategyPlan& row : plan.strategies) {
    std::vector<std::string> cells = {
        row.strategy.canonical(),
        absl::StrCat(row.strategy.num_leaders(), "/",
                     row.strategy.num_layers()),
        FormatBytes(row.kv_bytes_per_token),
        MiB(row.held_bytes),
        absl::StrCat(row.num_sequences),
        Seconds(row.first_token)};
    for (const int batch : request.batches) cells.push_back(Cell(row, batch));
    cells.push_back(row.full.batch > 0
                        ? absl::StrFormat("x%d: %s", row.full.batch,
                                          TokensPerSecond(row.full))
                        : "-");
    table.AddRow(std::move(cells));
  }
  return absl::StrCat(Head(model, request, plan), "\n", table.Render(kWidth),
                      kNote, ServeLine(request, plan));
}

}  // namespace strata
