#include "core/model/lora_config.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "core/model/file_error.h"
#include "core/model/json_fields.h"
#include "core/model/module_pattern.h"

namespace strata {
namespace {

using nlohmann::json;

constexpr int kMaxRank = 65536;

// Read here, or without effect once the adapter is trained.
constexpr std::string_view kKnownFields[] = {
    "alpha_pattern",
    "auto_mapping",
    "base_model_name_or_path",
    "bias",
    "corda_config",
    "eva_config",
    "exclude_modules",
    "inference_mode",
    "init_lora_weights",
    "layers_pattern",
    "layers_to_transform",
    "loftq_config",
    "lora_alpha",
    "lora_dropout",
    "lora_ga_config",
    "megatron_config",
    "megatron_core",
    "modules_to_save",
    "peft_type",
    "peft_version",
    "qalora_group_size",
    "r",
    "rank_pattern",
    "revision",
    "runtime_config",
    "target_modules",
    "task_type",
    "use_rslora",
    "velora_config",
};

// Ways to initialise LoRA that change the weights below the adapter as well.
constexpr std::string_view kResidualInits[] = {"pissa", "olora", "corda",
                                               "loftq", "lora_ga"};

std::string Dump(const json& value) {
  return Quote(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

bool SaysNothing(const json& value) {
  if (value.is_null()) return true;
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value.get<double>() == 0;
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return value.empty();
}

absl::Status CheckFields(const std::string& path, const json& root) {
  for (const auto& [key, value] : root.items()) {
    if (SaysNothing(value) || std::ranges::count(kKnownFields, key) > 0) {
      continue;
    }
    return Unsupported(path, Quote(key), " is ", Dump(value),
                       ", which is not supported; plain LoRA is, with "
                       "rank_pattern, alpha_pattern, use_rslora and "
                       "modules_to_save");
  }
  return absl::OkStatus();
}

// `field` must be absent or one of `allowed`.
absl::Status CheckOneOf(const JsonFields& fields, const char* field,
                        std::string_view allowed) {
  STRATA_ASSIGN_OR_RETURN(const std::string value,
                          fields.StringOr(field, allowed));
  if (value == allowed) return absl::OkStatus();
  return Unsupported(fields.path(), field, " is ", Quote(value),
                     ", which is not supported; ", allowed, " is");
}

absl::Status CheckInit(const JsonFields& fields) {
  const json* init = fields.Find("init_lora_weights");
  if (init == nullptr || !init->is_string()) return absl::OkStatus();
  const std::string& name = init->get_ref<const std::string&>();
  for (const std::string_view residual : kResidualInits) {
    if (!name.starts_with(residual)) continue;
    return Unsupported(fields.path(), "init_lora_weights is ", Quote(name),
                       ", which changes the model below the adapter too; "
                       "convert it to a plain adapter (PEFT: save_pretrained "
                       "with path_initial_model_for_weight_conversion)");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::pair<std::string, double>>> ReadPatterns(
    const JsonFields& fields, const char* field) {
  std::vector<std::pair<std::string, double>> patterns;
  const json* object = fields.Find(field);
  if (object == nullptr) return patterns;
  if (!object->is_object()) {
    return Malformed(fields.path(), field, " is ", Dump(*object),
                     ", expected an object of names and numbers");
  }
  const JsonFields entries(fields.path(), *object, field);
  for (const auto& [key, value] : object->items()) {
    STRATA_ASSIGN_OR_RETURN(const double number, entries.Number(key));
    patterns.emplace_back(key, number);
  }
  return patterns;
}

absl::StatusOr<std::vector<std::string>> ReadNames(const JsonFields& fields,
                                                   const char* field) {
  std::vector<std::string> names;
  const json* list = fields.Find(field);
  if (list == nullptr) return names;
  const auto is_name = [](const json& item) { return item.is_string(); };
  if (!list->is_array() || !std::ranges::all_of(*list, is_name)) {
    return Malformed(fields.path(), field, " is ", Dump(*list),
                     ", expected a list of names");
  }
  return list->get<std::vector<std::string>>();
}

bool IsRank(double value) {
  return value >= 1 && value <= kMaxRank && value == std::floor(value);
}

}  // namespace

absl::StatusOr<LoraConfig> LoraConfig::Parse(const std::string& path,
                                             std::string_view text) {
  STRATA_ASSIGN_OR_RETURN(const json root, ParseJsonObject(path, text));
  const JsonFields fields(path, root);
  if (!fields.Has("peft_type")) {
    return Malformed(path, "peft_type is missing, expected LORA");
  }
  STRATA_RETURN_IF_ERROR(CheckOneOf(fields, "peft_type", "LORA"));
  STRATA_RETURN_IF_ERROR(CheckOneOf(fields, "task_type", "CAUSAL_LM"));
  STRATA_RETURN_IF_ERROR(CheckOneOf(fields, "bias", "none"));
  STRATA_RETURN_IF_ERROR(CheckInit(fields));
  STRATA_RETURN_IF_ERROR(CheckFields(path, root));

  LoraConfig config;
  config.path_ = path;
  // PEFT's own defaults.
  STRATA_ASSIGN_OR_RETURN(config.rank_, fields.IntegerOr("r", 8));
  STRATA_ASSIGN_OR_RETURN(config.alpha_, fields.NumberOr("lora_alpha", 8));
  STRATA_ASSIGN_OR_RETURN(config.use_rslora_,
                          fields.BoolOr("use_rslora", false));
  STRATA_ASSIGN_OR_RETURN(config.rank_patterns_,
                          ReadPatterns(fields, "rank_pattern"));
  STRATA_ASSIGN_OR_RETURN(config.alpha_patterns_,
                          ReadPatterns(fields, "alpha_pattern"));
  STRATA_ASSIGN_OR_RETURN(config.targets_, LoraTargets::Parse(fields));
  STRATA_ASSIGN_OR_RETURN(config.modules_to_save_,
                          ReadNames(fields, "modules_to_save"));
  const auto is_bad = [](const auto& entry) { return !IsRank(entry.second); };
  if (!IsRank(config.rank_) ||
      std::ranges::any_of(config.rank_patterns_, is_bad)) {
    return Malformed(path,
                     "r and the values of rank_pattern must be integers "
                     "from 1 to ",
                     kMaxRank);
  }
  return config;
}

absl::StatusOr<int> LoraConfig::RankOf(const std::string& module) const {
  STRATA_ASSIGN_OR_RETURN(const double rank,
                          Find("rank_pattern", rank_patterns_, module, rank_));
  return static_cast<int>(rank);
}

absl::StatusOr<float> LoraConfig::ScaleOf(const std::string& module,
                                          int rank) const {
  STRATA_ASSIGN_OR_RETURN(
      const double alpha,
      Find("alpha_pattern", alpha_patterns_, module, alpha_));
  return static_cast<float>(alpha / (use_rslora_ ? std::sqrt(rank) : rank));
}

absl::StatusOr<double> LoraConfig::Find(const char* field,
                                        const Patterns& patterns,
                                        const std::string& module,
                                        double fallback) const {
  const Patterns::value_type* found = nullptr;
  for (const auto& entry : patterns) {
    const absl::StatusOr<bool> fits = PatternFits(entry.first, module);
    if (!fits.ok()) return InFile(Concat(path_, ": ", field), fits.status());
    if (!*fits) continue;
    if (found != nullptr && found->second != entry.second) {
      return Malformed(path_, field, ": ", Quote(found->first), " and ",
                       Quote(entry.first), " both fit ", module, " and differ");
    }
    found = &entry;
  }
  return found != nullptr ? found->second : fallback;
}

}  // namespace strata
