// The part of ModelHost that fills the backend's memory: with weights, then
// with what a step needs, then with the pool.

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "core/packed_model.h"
#include "core/transformer.h"
#include "server/process/memory_plan.h"
#include "server/process/model_host.h"

namespace strata {
namespace {

// The error of a backend that has no memory for a part of the plan says which.
absl::Status OfPart(const absl::Status& status, absl::string_view what,
                    std::optional<int64_t> wanted_bytes, int64_t free_bytes,
                    absl::string_view remedy) {
  if (!absl::IsResourceExhausted(status)) return status;
  return OutOfMemory(what, wanted_bytes, free_bytes,
                     absl::StrCat(status.message(), "; ", remedy));
}

constexpr char kSmallerModel[] = "--model: take a smaller one";

std::string FewerRows(const ServerOptions& options) {
  return absl::StrCat("lower --max_batched_tokens=",
                      options.max_batched_tokens);
}

// Packs the weights, with a line in the log at each quarter.
PackedModel Pack(const Checkpoint& checkpoint, const ServerOptions& options,
                 Backend* backend, Logger* logger) {
  const int num_layers = checkpoint.config.num_layers;
  const auto progress = [=](int done) {
    if (done * 4 / num_layers > (done - 1) * 4 / num_layers) {
      logger->Info("packing", {{"layers", done}, {"of", num_layers}});
    }
  };
  return PackModel(checkpoint, backend, progress, options.NumThreads());
}

}  // namespace

absl::Status ModelHost::PlanMemory(const ServerOptions& options) {
  const ModelConfig& config = checkpoint_.config;
  const auto weight_bytes = PackedModelBytes(checkpoint_, *backend_);
  if (!weight_bytes.ok()) return OfModel(options, weight_bytes.status());
  memory_.weight_bytes = *weight_bytes;
  memory_.logit_bytes =
      Transformer::LogitBytes(config, options.max_batched_tokens);
  // What can be told now is told before the weights are packed.
  STRATA_ASSIGN_OR_RETURN(int64_t free_bytes, backend_->FreeBytes());
  STRATA_RETURN_IF_ERROR(CheckFits("the weights", memory_.weight_bytes,
                                   free_bytes, kSmallerModel));
  free_bytes -= memory_.weight_bytes;
  const int64_t activation_bytes =
      Transformer::ActivationBytes(config, options.max_batched_tokens);
  STRATA_RETURN_IF_ERROR(CheckFits("the workspace", activation_bytes,
                                   free_bytes, FewerRows(options)));
  free_bytes -= activation_bytes;
  return NumKvPages(options.kv_memory, free_bytes, page_bytes_).status();
}

absl::Status ModelHost::LoadWeights(const ServerOptions& options,
                                    Logger* logger) {
  STRATA_ASSIGN_OR_RETURN(int64_t free_bytes, backend_->FreeBytes());
  PackedModel packed = Pack(checkpoint_, options, backend_.get(), logger);
  STRATA_RETURN_IF_ERROR(OfPart(backend_->Wait(), "the weights",
                                memory_.weight_bytes, free_bytes,
                                kSmallerModel));
  STRATA_ASSIGN_OR_RETURN(free_bytes, backend_->FreeBytes());
  transformer_ = std::make_unique<Transformer>(
      std::move(packed), backend_.get(), options.max_batched_tokens);
  const auto workspace_bytes =
      transformer_->Reserve(layout_, options.max_sequences);
  if (workspace_bytes.ok()) {
    memory_.workspace_bytes = *workspace_bytes;
    return absl::OkStatus();
  }
  if (!absl::IsResourceExhausted(workspace_bytes.status())) {
    return OfModel(options, workspace_bytes.status());
  }
  return OfPart(workspace_bytes.status(), "the workspace", std::nullopt,
                free_bytes, FewerRows(options));
}

absl::Status ModelHost::CreatePages(const ServerOptions& options,
                                    Logger* logger) {
  STRATA_ASSIGN_OR_RETURN(const int64_t free_bytes, backend_->FreeBytes());
  STRATA_ASSIGN_OR_RETURN(
      layout_.num_pages,
      NumKvPages(options.kv_memory, free_bytes, page_bytes_));
  memory_.kv_bytes = layout_.num_pages * page_bytes_;
  memory_.left_bytes = free_bytes - memory_.kv_bytes;
  STRATA_RETURN_IF_ERROR(OfPart(
      backend_->CreateKvPages(layout_), "the KV cache", memory_.kv_bytes,
      free_bytes,
      absl::StrCat("lower --kv_memory=", FormatMemorySize(options.kv_memory))));
  logger->Info("memory", {{"weight_bytes", memory_.weight_bytes},
                          {"workspace_bytes", memory_.workspace_bytes},
                          {"logit_bytes", memory_.logit_bytes},
                          {"kv_bytes", memory_.kv_bytes},
                          {"kv_pages", layout_.num_pages},
                          {"left_bytes", memory_.left_bytes}});
  return absl::OkStatus();
}

}  // namespace strata
