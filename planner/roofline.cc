#include "planner/roofline.h"

#include <algorithm>

namespace strata {
namespace {

constexpr double kOpsPerElement = 2;  // a multiply and an add

// Of one layer's attention for one query position over `num_keys` others: a
// product with the keys and one with the values.
double AttentionFlops(const ModelConfig& config, double num_keys) {
  return 2 * kOpsPerElement * num_keys * config.num_heads * config.head_dim;
}

double CacheBytes(const RooflineModel& model, int64_t num_cached) {
  return static_cast<double>(model.config->num_layers) * num_cached *
         model.leader_bytes;
}

}  // namespace

Work DecodeWork(const RooflineModel& model, const SharingStrategy& strategy,
                int batch, int64_t num_cached) {
  double flops = kOpsPerElement * model.costs->head.num_elements;
  for (int layer = 0; layer < strategy.num_layers(); ++layer) {
    const ModelCosts::Layer& costs = model.costs->layers[layer];
    flops += kOpsPerElement * costs.others.num_elements;
    if (strategy.is_leader(layer)) {
      flops += kOpsPerElement * costs.kv.num_elements;
    }
    flops += AttentionFlops(*model.config, num_cached);
  }
  return {.bytes = model.costs->BytesRead(strategy) +
                   batch * CacheBytes(model, num_cached),
          .flops = batch * flops};
}

Work PrefillWork(const RooflineModel& model, const SharingStrategy& strategy,
                 int64_t num_prompt) {
  const double rows = num_prompt;
  double flops = kOpsPerElement * model.costs->head.num_elements;
  for (int layer = 0; layer < strategy.num_layers(); ++layer) {
    const ModelCosts::Layer& costs = model.costs->layers[layer];
    if (strategy.is_leader(layer)) {
      flops += rows * kOpsPerElement * costs.kv.num_elements;
    }
    const bool all_go_on = layer < strategy.last_leader();
    flops +=
        (all_go_on ? rows : 1) * kOpsPerElement * costs.others.num_elements;
    // Position t has t + 1 keys.
    flops +=
        AttentionFlops(*model.config, all_go_on ? rows * (rows + 1) / 2 : rows);
  }
  return {
      .bytes = model.costs->BytesRead(strategy) + CacheBytes(model, num_prompt),
      .flops = flops};
}

Estimate EstimateOn(const Hardware& hardware, const Work& work) {
  const double read = work.bytes / hardware.read_bytes_per_second;
  const double compute = work.flops / hardware.flops_per_second;
  return {.work = work,
          .seconds = std::max(read, compute),
          .is_compute_bound = compute > read};
}

}  // namespace strata
