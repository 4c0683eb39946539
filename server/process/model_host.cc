#include "server/process/model_host.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "core/model/lora_adapter.h"
#include "core/model/weight_split.h"
#include "core/transformer.h"
#include "server/model_info.h"
#include "server/version.h"

namespace strata {
namespace {

absl::Status BadFlag(const char* flag, const std::string& value,
                     absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, ": ", what));
}

absl::Status CheckTensorParallel(const ServerOptions& options,
                                 const Checkpoint& checkpoint) {
  const absl::Status split = CheckSplit(checkpoint, options.tensor_parallel);
  if (split.ok()) return split;
  return BadFlag("tensor_parallel", absl::StrCat(options.tensor_parallel),
                 split.message());
}

absl::StatusOr<int> MaxModelLen(const ServerOptions& options,
                                const ModelConfig& config) {
  if (options.max_model_len > config.max_positions) {
    return BadFlag("max_model_len", absl::StrCat(options.max_model_len),
                   absl::StrCat("the model was made for ", config.max_positions,
                                " positions"));
  }
  return options.max_model_len > 0 ? options.max_model_len
                                   : config.max_positions;
}

absl::Status ApplyAdapter(const ServerOptions& options, Logger* logger,
                          Checkpoint* checkpoint) {
  if (options.adapter.empty()) return absl::OkStatus();
  STRATA_ASSIGN_OR_RETURN(
      const AdapterSummary summary,
      ApplyLoraAdapter(options.adapter, options.precision == "f32",
                       checkpoint));
  logger->Info("adapter", {{"path", options.adapter},
                           {"r", summary.rank},
                           {"matrices_merged", summary.num_merged},
                           {"kept_as", summary.kept_as},
                           {"tensors_replaced", summary.num_replaced}});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelHost>> ModelHost::Load(
    const ServerOptions& options, const BackendOpener& open_backend,
    Logger* logger) {
  const absl::Time begin = absl::Now();
  // Not make_unique: the constructor is private.
  std::unique_ptr<ModelHost> host(new ModelHost);
  STRATA_RETURN_IF_ERROR(host->LoadFiles(options, logger));
  STRATA_RETURN_IF_ERROR(CheckTensorParallel(options, host->checkpoint_));
  STRATA_RETURN_IF_ERROR(host->SetStrategies(options));
  STRATA_ASSIGN_OR_RETURN(host->backend_, open_backend(options, logger));
  STRATA_RETURN_IF_ERROR(host->SetSizes(options));
  STRATA_RETURN_IF_ERROR(host->PlanMemory(options));
  host->LogPlan(options, logger);
  STRATA_RETURN_IF_ERROR(host->LoadWeights(options, logger));
  STRATA_RETURN_IF_ERROR(host->CreatePages(options, logger));
  STRATA_RETURN_IF_ERROR(host->StartEngine(options, logger));
  host->Describe(options);
  PublishStrategyLabels(host->served_);
  logger->Info("loaded",
               {{"seconds", absl::ToDoubleSeconds(absl::Now() - begin)}});
  return host;
}

absl::Status ModelHost::OfModel(const ServerOptions& options,
                                const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(options.model, ": ", status.message()));
}

absl::Status ModelHost::LoadFiles(const ServerOptions& options,
                                  Logger* logger) {
  STRATA_ASSIGN_OR_RETURN(checkpoint_, LoadCheckpoint(options.model));
  STRATA_RETURN_IF_ERROR(ApplyAdapter(options, logger, &checkpoint_));
  served_.chat_error = absl::FailedPreconditionError(
      "the model has no chat template: render the messages and send text");
  if (!checkpoint_.tokenizer.has_value()) return absl::OkStatus();
  auto tokenizer = Tokenizer::Create(*std::move(checkpoint_.tokenizer));
  if (!tokenizer.ok()) return OfModel(options, tokenizer.status());
  tokenizer_ = *std::move(tokenizer);
  const TokenizerSpec& spec = tokenizer_->spec();
  if (spec.chat_template.empty()) return absl::OkStatus();
  const auto text_of = [&](const std::optional<int32_t>& id) {
    return id.has_value() ? tokenizer_->Bytes(*id, /*skip_special=*/false)
                          : std::string_view();
  };
  auto chat = ChatTemplate::Recognize(spec.chat_template, text_of(spec.bos),
                                      text_of(spec.eos));
  // A model without a known template still serves text and tokens.
  served_.chat_error = chat.status();
  if (chat.ok()) chat_ = *std::move(chat);
  return absl::OkStatus();
}

absl::Status ModelHost::SetStrategies(const ServerOptions& options) {
  // The default may be given by name, but names are registered with a default.
  std::string default_spec = options.default_strategy;
  for (const auto& [name, spec] : options.strategies) {
    if (name == options.default_strategy) default_spec = spec;
  }
  const int num_layers = checkpoint_.config.num_layers;
  auto parsed = SharingStrategy::Parse(default_spec, num_layers);
  if (!parsed.ok()) {
    return BadFlag("default_strategy", options.default_strategy,
                   parsed.status().message());
  }
  strategies_ =
      std::make_unique<StrategyRegistry>(num_layers, *std::move(parsed));
  for (const auto& [name, spec] : options.strategies) {
    const absl::Status registered = strategies_->Register(name, spec);
    if (!registered.ok()) {
      return BadFlag("strategies", absl::StrCat(name, "=", spec),
                     registered.message());
    }
  }
  return absl::OkStatus();
}

absl::Status ModelHost::SetSizes(const ServerOptions& options) {
  const ModelConfig& config = checkpoint_.config;
  layout_ = {.num_pages = 1,
             .page_tokens = options.page_tokens,
             .kv_heads = config.num_kv_heads,
             .head_dim = config.head_dim};
  page_bytes_ = backend_->PageBytes(layout_);
  STRATA_ASSIGN_OR_RETURN(max_model_len_, MaxModelLen(options, config));
  return absl::OkStatus();
}

void ModelHost::LogPlan(const ServerOptions& options, Logger* logger) const {
  const ModelConfig& config = checkpoint_.config;
  logger->Info("plan", {{"architecture", config.architecture},
                        {"layers", config.num_layers},
                        {"weights", checkpoint_.weight_format},
                        {"weight_bytes", checkpoint_.weight_bytes},
                        {"tokenizer", tokenizer_ != nullptr},
                        {"chat", chat_ != nullptr ? std::string(chat_->family())
                                                  : std::string("none")},
                        {"backend", backend_->name()},
                        {"device", backend_->device()},
                        {"kv_format", backend_->kv_format()},
                        {"page_bytes", page_bytes_},
                        {"max_model_len", max_model_len_},
                        {"admission", options.admission},
                        {"default_strategy",
                         strategies_->default_strategy().canonical()}});
}

absl::Status ModelHost::StartEngine(const ServerOptions& options,
                                    Logger* logger) {
  metrics_ = std::make_unique<Metrics>(
      &registry_,
      Metrics::Config{.model_name = options.ModelName(),
                      .version = kVersion,
                      .backend = backend_->name(),
                      .kv_format = backend_->kv_format(),
                      .page_tokens = options.page_tokens,
                      .page_bytes = page_bytes_,
                      .num_pages = layout_.num_pages,
                      .num_layers = checkpoint_.config.num_layers,
                      .max_model_len = max_model_len_,
                      .max_sequences = options.max_sequences,
                      .max_queued_requests = options.max_queued_requests});
  const Engine::Options engine_options = {
      .scheduler = {.max_sequences = options.max_sequences,
                    .max_batched_tokens = options.max_batched_tokens,
                    .page_tokens = options.page_tokens,
                    .optimistic = options.admission == "optimistic"},
      .pressure = {.demote_under_pressure = options.demote_under_pressure,
                   .pressure_threshold = options.pressure_threshold},
      .max_queued_requests = options.max_queued_requests,
      .max_model_len = max_model_len_,
      .num_pages = layout_.num_pages,
      .page_bytes = page_bytes_,
      .stall_limit = options.stall_limit};
  Engine::Parts parts;
  parts.transformer = std::move(transformer_);
  parts.tokenizer = tokenizer_.get();
  parts.eos_ids = checkpoint_.eos_ids;
  parts.strategies = strategies_.get();
  parts.metrics = metrics_.get();
  parts.on_device_lost = [logger](const absl::Status& error) {
    logger->Error("device_lost", {{"error", std::string(error.message())}});
  };
  STRATA_ASSIGN_OR_RETURN(engine_,
                          Engine::Create(engine_options, std::move(parts)));
  return absl::OkStatus();
}

void ModelHost::Describe(const ServerOptions& options) {
  served_.name = options.ModelName();
  served_.config = &checkpoint_.config;
  served_.engine = engine_.get();
  served_.strategies = strategies_.get();
  served_.metrics = metrics_.get();
  served_.tokenizer = tokenizer_.get();
  served_.chat = chat_.get();
  served_.backend = backend_->name();
  served_.weight_format = checkpoint_.weight_format;
  served_.kv_format = backend_->kv_format();
  served_.weight_bytes = checkpoint_.weight_bytes;
  served_.page_tokens = options.page_tokens;
  served_.page_bytes = page_bytes_;
}

}  // namespace strata
