#include "server/model_info.h"

#include <string>

#include "base/check.h"

namespace strata {
namespace {

// K and V of one position of one leader layer.
int64_t LeaderBytes(const ServedModel& model) {
  return model.page_bytes / model.page_tokens;
}

v1::StrategyInfo Describe(const ServedModel& model, const std::string& name,
                          const SharingStrategy& strategy) {
  v1::StrategyInfo info;
  info.set_name(name);
  info.set_canonical(strategy.canonical());
  info.mutable_sources()->Add(strategy.sources().begin(),
                              strategy.sources().end());
  info.set_kv_bytes_per_token(strategy.KvBytesPerToken(LeaderBytes(model)));
  info.set_max_resident_tokens(model.engine->limits().num_pages /
                               strategy.num_leaders() * model.page_tokens);
  return info;
}

}  // namespace

v1::GetModelResponse DescribeModel(const ServedModel& model) {
  const ModelConfig& config = *model.config;
  v1::GetModelResponse response;
  response.set_name(model.name);
  response.set_architecture(config.architecture);
  response.set_num_layers(config.num_layers);
  response.set_num_heads(config.num_heads);
  response.set_num_kv_heads(config.num_kv_heads);
  response.set_head_dim(config.head_dim);
  response.set_hidden_size(config.hidden_size);
  response.set_vocab_size(config.vocab_size);
  response.set_max_model_len(model.engine->limits().max_model_len);
  response.set_backend(model.backend);
  response.set_weight_format(model.weight_format);
  response.set_kv_format(model.kv_format);
  response.set_weight_bytes(model.weight_bytes);
  for (v1::StrategyInfo& info : DescribeStrategies(model)) {
    *response.add_strategies() = std::move(info);
  }
  response.set_page_tokens(model.page_tokens);
  response.set_page_bytes(model.page_bytes);
  return response;
}

std::vector<v1::StrategyInfo> DescribeStrategies(const ServedModel& model) {
  std::vector<v1::StrategyInfo> infos;
  infos.push_back(
      Describe(model, "default", model.strategies->default_strategy()));
  for (const StrategyRegistry::Named& named : model.strategies->registered()) {
    infos.push_back(Describe(model, named.name, named.strategy));
  }
  return infos;
}

v1::GetLoadResponse DescribeLoad(const LoadReport& load) {
  v1::GetLoadResponse response;
  response.set_running(load.running);
  response.set_waiting(load.waiting);
  response.set_kv_pool_bytes(load.kv_pool_bytes);
  response.set_kv_used_bytes(load.kv_used_bytes);
  response.set_kv_cached_bytes(load.kv_cached_bytes);
  response.set_kv_saved_bytes(load.kv_saved_bytes);
  response.set_kv_reserved_bytes(load.kv_reserved_bytes);
  response.set_kv_free_bytes(load.kv_free_bytes);
  response.set_prompt_tokens_per_second(load.prompt_tokens_per_second);
  response.set_generated_tokens_per_second(load.generated_tokens_per_second);
  for (const LoadReport::Strategy& strategy : load.strategies) {
    v1::StrategyLoad* message = response.add_strategies();
    message->set_strategy(strategy.label);
    message->set_running(strategy.running);
    message->set_kv_used_bytes(strategy.kv_used_bytes);
  }
  return response;
}

void PublishStrategyLabels(const ServedModel& model) {
  const std::vector<std::string> labels = model.strategies->labels();
  for (size_t i = 1; i < labels.size(); ++i) {  // [0], "other", is always there
    const auto strategy =
        SharingStrategy::Parse(labels[i], model.strategies->num_layers());
    STRATA_CHECK(strategy.ok());
    model.metrics->AddStrategy(static_cast<int>(i), labels[i],
                               strategy->KvBytesPerToken(LeaderBytes(model)));
  }
}

}  // namespace strata
