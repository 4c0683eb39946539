#include "planner/run_plan.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "client/text_format.h"
#include "core/model/weight_split.h"
#include "planner/capacity_plan.h"
#include "planner/hardware.h"
#include "planner/model_costs.h"
#include "planner/planned_model.h"
#include "planner/public_shapes.h"
#include "planner/report.h"

namespace strata {
namespace {

constexpr int64_t kDefaultContext = 32768;

// What CUDA's context and libraries are allowed on a GPU.
constexpr int64_t kGpuAllowance = int64_t{1} << 30;

absl::Status OfFlag(const char* flag, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("--", flag, ": ", status.message()));
}

absl::StatusOr<PlannedModel> FindModel(const PlanFlags& flags) {
  if (flags.shape.empty()) return ReadModel(flags.model, flags.weight_type);
  const auto description = FindPublicShape(flags.shape);
  if (!description.ok()) return OfFlag("shape", description.status());
  return ModelOfShape(flags.shape, *description,
                      flags.weight_type.value_or(DType::kBF16));
}

// Sets hardware and memory.
absl::Status SetHardware(const PlanFlags& flags, const PlannedModel& model,
                         PlanRequest* request) {
  auto found = FindHardware(flags.device);
  if (!found.ok()) return OfFlag("device", found.status());
  Hardware& hardware = request->hardware = *std::move(found);
  request->memory_bytes = flags.memory_bytes.value_or(hardware.memory_bytes);
  if (request->memory_bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory is needed with --device=", flags.device));
  }
  request->memory_bytes *= flags.tensor_parallel;
  // What is sold as GB of GPU memory is GiB as a rule.
  const int64_t most = hardware.memory_bytes / 1'000'000'000 << 30;
  const int64_t of_each = request->memory_bytes / flags.tensor_parallel;
  if (hardware.memory_bytes > 0 && of_each > most) {
    return absl::InvalidArgumentError(absl::StrCat("--memory=", of_each,
                                                   ": --device=", flags.device,
                                                   " has ", FormatBytes(most)));
  }
  const bool is_given = flags.read_gb_per_second > 0 || flags.teraflops > 0;
  if (flags.read_gb_per_second > 0) {
    hardware.read_bytes_per_second = 1e9 * flags.read_gb_per_second;
  }
  if (flags.teraflops > 0) hardware.flops_per_second = 1e12 * flags.teraflops;
  if (is_given) hardware.description += ", rates as given";
  if (!hardware.is_gpu) {
    const Checkpoint& checkpoint = model.checkpoint;
    const int num_layers = checkpoint.config.num_layers;
    return MeasureCpu(flags.threads, checkpoint.layers[0].gate.type,
                      flags.kv_type == PlannedKvType::kF32,
                      CostsOf(checkpoint, /*is_gpu=*/false)
                          .BytesRead(SharingStrategy::Full(num_layers)),
                      &hardware);
  }
  if (hardware.read_bytes_per_second > 0 && hardware.flops_per_second > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--read_bandwidth and --flops are needed with --device=", flags.device));
}

absl::StatusOr<PlanRequest> RequestOf(const PlanFlags& flags,
                                      const PlannedModel& model) {
  const ModelConfig& config = model.checkpoint.config;
  PlanRequest request;
  const absl::Status split =
      CheckSplit(model.checkpoint, flags.tensor_parallel);
  if (!split.ok()) return OfFlag("tensor_parallel", split);
  STRATA_RETURN_IF_ERROR(SetHardware(flags, model, &request));
  request.hardware = Several(request.hardware, flags.tensor_parallel);
  request.num_devices = flags.tensor_parallel;
  request.workspace_bytes =
      flags.tensor_parallel *
      flags.workspace_bytes.value_or(
          ActivationBytes(config, flags.max_batched_tokens,
                          request.hardware.is_gpu) +
          (request.hardware.is_gpu ? kGpuAllowance : 0));
  request.kv_type = flags.kv_type;
  request.fp8_weights = flags.fp8_weights;
  request.page_tokens = flags.page_tokens;
  request.max_batched_tokens = flags.max_batched_tokens;
  request.output_tokens = flags.output_tokens;
  request.context = flags.context;
  if (flags.context == 0) {
    request.context = std::clamp<int64_t>(
        config.max_positions - flags.output_tokens, 1, kDefaultContext);
  }
  request.strategies = flags.strategies;
  request.batches = flags.batches;
  return request;
}

}  // namespace

absl::StatusOr<std::string> RunPlan(const PlanFlags& flags) {
  STRATA_ASSIGN_OR_RETURN(const PlannedModel model, FindModel(flags));
  STRATA_ASSIGN_OR_RETURN(const PlanRequest request, RequestOf(flags, model));
  STRATA_ASSIGN_OR_RETURN(const CapacityPlan plan, MakePlan(model, request));
  if (!flags.json.empty()) {
    std::ofstream file(flags.json);
    file << PlanJson(model, request, plan);
    file.close();
    if (!file) {
      return absl::UnavailableError(
          absl::StrCat("--json: cannot write ", flags.json));
    }
  }
  return PlanText(model, request, plan);
}

}  // namespace strata
