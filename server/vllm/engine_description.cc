#include "server/vllm/engine_description.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/version.h"

namespace strata::vllm {
namespace {

using ::vllm::grpc::engine::GetLoadsResponse;
using ::vllm::grpc::engine::GetModelInfoResponse;
using ::vllm::grpc::engine::GetServerInfoResponse;
using ::vllm::grpc::engine::SchedulerLoad;

// Transformers' class, of the architecture in config.json or the GGUF file.
std::string ClassName(std::string architecture) {
  architecture[0] = absl::ascii_toupper(architecture[0]);
  return architecture + "ForCausalLM";
}

// What the pool holds under `full`, the unit of vllm:cache_config_info too.
int32_t PoolTokens(const ServedModel& model) {
  const int64_t tokens = model.engine->limits().num_pages /
                         model.config->num_layers * model.page_tokens;
  return static_cast<int32_t>(
      std::min<int64_t>(tokens, std::numeric_limits<int32_t>::max()));
}

}  // namespace

GetModelInfoResponse DescribeModel(const ServedModel& model,
                                   const EngineFacts& facts) {
  const int max_model_len = model.engine->limits().max_model_len;
  GetModelInfoResponse response;
  response.set_model_path(facts.model_path);
  response.set_is_generation(true);
  response.set_max_context_length(max_model_len);
  response.set_vocab_size(model.config->vocab_size);
  response.set_served_model_name(model.name);
  if (model.tokenizer != nullptr &&
      std::filesystem::is_directory(facts.model_path)) {
    response.set_tokenizer_path(facts.model_path);
  }
  response.set_model_type(model.config->architecture);
  response.add_architectures(ClassName(model.config->architecture));
  for (const int32_t id : model.engine->eos_ids()) {
    response.add_eos_token_ids(id);
  }
  if (model.tokenizer != nullptr) {
    response.set_bos_token_id(model.tokenizer->spec().bos.value_or(0));
  }
  response.set_max_req_input_len(max_model_len - 1);
  return response;
}

GetServerInfoResponse DescribeServer(const ServedModel& model,
                                     const EngineFacts& facts) {
  const LoadReport load = model.engine->GetLoad();
  GetServerInfoResponse response;
  response.set_active_requests(load.running + load.waiting);
  response.set_server_type("strata");
  response.set_data_parallel_size(1);
  response.set_kv_cache_dtype(model.kv_format);
  response.set_block_size(model.page_tokens);
  response.set_model_dtype(model.weight_format);
  response.set_max_num_seqs(facts.max_sequences);
  return response;
}

GetLoadsResponse DescribeLoads(const ServedModel& model,
                               const EngineFacts& facts) {
  const LoadReport report = model.engine->GetLoad();
  // As vllm:kv_cache_usage_perc (semantics 9).
  const double usage =
      static_cast<double>(report.kv_used_bytes + report.kv_reserved_bytes) /
      static_cast<double>(std::max<int64_t>(1, report.kv_pool_bytes));
  GetLoadsResponse response;
  response.set_timestamp(
      absl::FormatTime(absl::RFC3339_full, absl::Now(), absl::UTCTimeZone()));
  response.set_version(strata::kVersion);
  response.set_dp_rank_count(1);
  SchedulerLoad* load = response.add_loads();
  load->set_num_running_reqs(report.running);
  load->set_num_waiting_reqs(report.waiting);
  load->set_num_total_reqs(report.running + report.waiting);
  load->set_num_used_tokens(
      static_cast<int32_t>(std::lround(usage * PoolTokens(model))));
  load->set_max_total_num_tokens(PoolTokens(model));
  load->set_token_usage(usage);
  load->set_utilization(usage);
  load->set_gen_throughput(report.generated_tokens_per_second);
  load->set_max_running_requests(facts.max_sequences);
  return response;
}

}  // namespace strata::vllm
