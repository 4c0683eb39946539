#include <nlohmann/json.hpp>
#include <string>

#include "planner/report.h"

namespace strata {
namespace {

using nlohmann::json;

json EstimateJson(const Estimate& estimate) {
  return {{"seconds", estimate.seconds},
          {"limit", estimate.is_compute_bound ? "compute" : "memory"},
          {"bytes_read", estimate.work.bytes},
          {"flops", estimate.work.flops}};
}

json DecodeJson(const StrategyPlan::Decode& decode) {
  json value = EstimateJson(decode.step);
  value["batch"] = decode.batch;
  value["tokens_per_second"] = decode.TokensPerSecond();
  return value;
}

json ModelJson(const PlannedModel& model) {
  const ModelConfig& c = model.checkpoint.config;
  return {{"name", model.name},
          {"architecture", c.architecture},
          {"layers", c.num_layers},
          {"hidden_size", c.hidden_size},
          {"heads", c.num_heads},
          {"kv_heads", c.num_kv_heads},
          {"head_dim", c.head_dim},
          {"parameters", NumParameters(model)},
          {"weight_format", model.checkpoint.weight_format},
          {"weight_bytes", model.checkpoint.weight_bytes}};
}

json StrategyJson(const StrategyPlan& row) {
  json value = {{"spec", row.spec},
                {"strategy", row.strategy.canonical()},
                {"leaders", row.strategy.num_leaders()},
                {"kv_bytes_per_token", row.kv_bytes_per_token},
                {"kv_bytes_per_sequence", row.kv_bytes},
                {"pages_per_sequence", row.num_pages},
                {"held_bytes_per_sequence", row.held_bytes},
                {"sequences_at_once", row.num_sequences},
                {"first_token", EstimateJson(row.first_token)},
                {"decode", json::array()}};
  for (const StrategyPlan::Decode& decode : row.decode) {
    value["decode"].push_back(DecodeJson(decode));
  }
  if (row.full.batch > 0) value["decode_all"] = DecodeJson(row.full);
  return value;
}

}  // namespace

std::string PlanJson(const PlannedModel& model, const PlanRequest& request,
                     const CapacityPlan& plan) {
  json value = {
      {"kind", "estimate: upper limits of speed, not measurements"},
      {"model", ModelJson(model)},
      {"device",
       {{"name", request.hardware.name},
        {"description", request.hardware.description},
        {"read_bytes_per_second", request.hardware.read_bytes_per_second},
        {"flops_per_second", request.hardware.flops_per_second}}},
      {"memory",
       {{"bytes", request.memory_bytes},
        {"weight_bytes", plan.weight_bytes},
        {"workspace_bytes", request.workspace_bytes},
        {"pool_bytes", plan.pool_bytes},
        {"pages", plan.num_pages},
        {"page_bytes", plan.page_bytes},
        {"page_tokens", request.page_tokens}}},
      {"request",
       {{"prompt_tokens", request.context},
        {"output_tokens", request.output_tokens},
        {"positions", plan.num_positions}}},
      {"strategies", json::array()}};
  for (const StrategyPlan& row : plan.strategies) {
    value["strategies"].push_back(StrategyJson(row));
  }
  return value.dump(2, ' ', true, json::error_handler_t::replace) + "\n";
}

}  // namespace strata
