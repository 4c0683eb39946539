#include "planner/capacity_plan.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "client/text_format.h"
#include "core/fit_request.h"
#include "core/request.h"
#include "kernels/cpu/kv_pages.h"
#include "kernels/cuda/kv_page.h"

namespace strata {
namespace {

absl::Status CheckContext(const ModelConfig& config,
                          const PlanRequest& request) {
  if (request.output_tokens <= config.max_positions - request.context) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--context=", request.context, " and --output_tokens=",
                   request.output_tokens, ": the model was made for ",
                   config.max_positions, " positions together"));
}

absl::Status CheckMemory(const PlanRequest& request, int64_t weight_bytes,
                         int64_t page_bytes) {
  const int64_t needed = weight_bytes + request.workspace_bytes + page_bytes;
  if (needed <= request.memory_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--memory=", request.memory_bytes, " (",
      FormatBytes(request.memory_bytes), "): the weights take ",
      FormatBytes(weight_bytes), ", the workspace ",
      FormatBytes(request.workspace_bytes), ", one page of KV cache ",
      FormatBytes(page_bytes), "; at least ", needed, " bytes are needed"));
}

int64_t PageBytes(const ModelConfig& config, const PlanRequest& request) {
  if (request.kv_type == PlannedKvType::kFp8) {  // each GPU's part
    return request.num_devices *
           cuda::KvPageBytes(cuda::KvFormat::kFp8,
                             config.num_kv_heads / request.num_devices,
                             request.page_tokens, config.head_dim);
  }
  // The CUDA backend's pages of bf16 have the same size.
  return cpu::KvPages::PageBytes({.num_pages = 1,
                                  .page_tokens = request.page_tokens,
                                  .kv_heads = config.num_kv_heads,
                                  .head_dim = config.head_dim},
                                 request.kv_type == PlannedKvType::kF32
                                     ? cpu::KvType::kF32
                                     : cpu::KvType::kBF16);
}

// One request as it reaches the engine.
Request RequestOf(const PlanRequest& plan, SharingStrategy strategy) {
  Request request(std::move(strategy));
  request.prompt.assign(plan.context, 0);
  request.stopping.max_tokens = static_cast<int32_t>(plan.output_tokens);
  return request;
}

class Planner {
 public:
  Planner(const PlannedModel& model, const PlanRequest& request)
      : request_(request),
        config_(model.checkpoint.config),
        costs_(CostsOf(model.checkpoint, request.hardware.is_gpu,
                       request.fp8_weights)) {}

  absl::StatusOr<CapacityPlan> Plan() {
    STRATA_RETURN_IF_ERROR(CheckContext(config_, request_));
    plan_.page_bytes = PageBytes(config_, request_);
    plan_.weight_bytes =
        costs_.held_bytes + (request_.num_devices - 1) * costs_.whole_bytes;
    STRATA_RETURN_IF_ERROR(
        CheckMemory(request_, plan_.weight_bytes, plan_.page_bytes));
    plan_.num_pages = NumPages(
        request_.memory_bytes - plan_.weight_bytes - request_.workspace_bytes,
        plan_.page_bytes);
    plan_.pool_bytes = plan_.num_pages * plan_.page_bytes;
    for (const std::string& spec : request_.strategies) {
      auto strategy = SharingStrategy::Parse(spec, config_.num_layers);
      if (!strategy.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--strategies: ", strategy.status().message()));
      }
      plan_.strategies.push_back(PlanStrategy(spec, *std::move(strategy)));
    }
    return std::move(plan_);
  }

 private:
  StrategyPlan PlanStrategy(const std::string& spec, SharingStrategy strategy) {
    const Request request = RequestOf(request_, strategy);
    const int64_t leader_bytes = plan_.page_bytes / request_.page_tokens;
    const RooflineModel model = {
        .config = &config_, .costs = &costs_, .leader_bytes = leader_bytes};
    plan_.num_positions = request.MaxPositions();
    StrategyPlan row = {.spec = spec, .strategy = std::move(strategy)};
    row.kv_bytes_per_token = row.strategy.KvBytesPerToken(leader_bytes);
    row.kv_bytes = plan_.num_positions * row.kv_bytes_per_token;
    row.num_pages = PagesNeeded(request, request_.page_tokens);
    row.held_bytes = row.num_pages * plan_.page_bytes;
    row.num_sequences = plan_.num_pages / row.num_pages;
    row.first_token = EstimateOn(
        request_.hardware, PrefillWork(model, row.strategy, request_.context));
    const auto decode = [&](int batch) {
      return StrategyPlan::Decode{
          .batch = batch,
          .step = EstimateOn(
              request_.hardware,
              DecodeWork(model, row.strategy, batch, request_.context))};
    };
    const int most = static_cast<int>(
        std::min<int64_t>(row.num_sequences, request_.max_batched_tokens));
    for (const int batch : request_.batches) {
      if (batch <= most) row.decode.push_back(decode(batch));
    }
    if (most > 0) row.full = decode(most);
    return row;
  }

  const PlanRequest& request_;
  const ModelConfig& config_;
  const ModelCosts costs_;
  CapacityPlan plan_;
};

}  // namespace

absl::StatusOr<CapacityPlan> MakePlan(const PlannedModel& model,
                                      const PlanRequest& request) {
  return Planner(model, request).Plan();
}

int64_t NumPages(int64_t pool_bytes, int64_t page_bytes) {
  // The server refuses more: page numbers have 32 bits.
  constexpr int64_t kMaxPages = std::numeric_limits<int32_t>::max();
  return std::min(pool_bytes / page_bytes, kMaxPages);
}

}  // namespace strata
