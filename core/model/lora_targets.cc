#include "core/model/lora_targets.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "core/model/file_error.h"
#include "core/model/module_pattern.h"

namespace strata {
namespace {

using nlohmann::json;

constexpr char kAllLinear[] = "all-linear";
constexpr char kHead[] = "lm_head";  // no part of all-linear

std::string Dump(const json& value) {
  return Quote(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

bool IsLayer(const json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() <= 1'000'000;
}

// One number or a list of them; an empty list says nothing.
absl::StatusOr<std::optional<std::vector<int>>> ReadLayers(
    const JsonFields& fields) {
  const json* value = fields.Find("layers_to_transform");
  if (value == nullptr || (value->is_array() && value->empty())) {
    return std::nullopt;
  }
  if (IsLayer(*value)) return std::vector<int>{value->get<int>()};
  if (value->is_array() && std::ranges::all_of(*value, IsLayer)) {
    return value->get<std::vector<int>>();
  }
  return Malformed(fields.path(), "layers_to_transform is ", Dump(*value),
                   ", expected a layer's number or a list of them");
}

absl::Status CheckLayersPattern(const JsonFields& fields) {
  const json* value = fields.Find("layers_pattern");
  if (value == nullptr || value->empty() || *value == "" ||
      *value == "layers" || *value == json::array({"layers"})) {
    return absl::OkStatus();
  }
  return Unsupported(fields.path(), "layers_pattern is ", Dump(*value),
                     ", which is not supported; \"layers\" is");
}

// Of "model.layers.3.self_attn.q_proj".
std::optional<int> LayerOf(absl::string_view module) {
  int layer = 0;
  if (!absl::ConsumePrefix(&module, "model.layers.") ||
      !absl::SimpleAtoi(module.substr(0, module.find('.')), &layer)) {
    return std::nullopt;
  }
  return layer;
}

}  // namespace

absl::StatusOr<LoraTargets> LoraTargets::Parse(const JsonFields& fields) {
  LoraTargets targets;
  targets.path_ = std::string(fields.path());
  STRATA_ASSIGN_OR_RETURN(targets.targets_,
                          ReadModules(fields, "target_modules"));
  const json* wanted = fields.Find("target_modules");
  targets.is_all_linear_ = wanted != nullptr && *wanted == kAllLinear;
  STRATA_ASSIGN_OR_RETURN(targets.excluded_,
                          ReadModules(fields, "exclude_modules"));
  STRATA_ASSIGN_OR_RETURN(targets.saved_,
                          ReadModules(fields, "modules_to_save"));
  STRATA_ASSIGN_OR_RETURN(targets.layers_, ReadLayers(fields));
  STRATA_RETURN_IF_ERROR(CheckLayersPattern(fields));
  return targets;
}

absl::StatusOr<LoraTargets::Modules> LoraTargets::ReadModules(
    const JsonFields& fields, const char* field) {
  Modules modules;
  const json* value = fields.Find(field);
  if (value == nullptr || *value == kAllLinear) return modules;
  const auto is_name = [](const json& item) { return item.is_string(); };
  if (value->is_string()) {
    modules.pattern = value->get<std::string>();
  } else if (value->is_array() && std::ranges::all_of(*value, is_name)) {
    modules.ends = value->get<std::vector<std::string>>();
  } else {
    return Malformed(fields.path(), field, " is ", Dump(*value),
                     ", expected a list of names or a pattern");
  }
  return modules;
}

absl::StatusOr<bool> LoraTargets::Include(const std::string& module) const {
  STRATA_ASSIGN_OR_RETURN(const bool is_excluded,
                          Fits("exclude_modules", excluded_, module));
  if (is_excluded) return false;
  STRATA_ASSIGN_OR_RETURN(const bool is_saved, IsSaved(module));
  if (is_saved) return false;
  if (is_all_linear_ && module == kHead) return false;
  if (!targets_.is_empty()) {
    STRATA_ASSIGN_OR_RETURN(const bool is_target,
                            Fits("target_modules", targets_, module));
    if (!is_target) return false;
    // What is named in full does not ask for layers.
    if (std::ranges::count(targets_.ends, module) > 0) return true;
  }
  if (!layers_) return true;
  const std::optional<int> layer = LayerOf(module);
  return layer && std::ranges::count(*layers_, *layer) > 0;
}

absl::StatusOr<bool> LoraTargets::Fits(const char* field,
                                       const Modules& modules,
                                       const std::string& module) const {
  if (!modules.pattern.empty()) {
    return OrInFile(field, PatternFitsAll(modules.pattern, module));
  }
  return std::ranges::any_of(modules.ends, [&](const std::string& end) {
    return module == end || module.ends_with("." + end);
  });
}

absl::StatusOr<bool> LoraTargets::IsSaved(const std::string& module) const {
  for (const std::string& saved : saved_.ends) {
    // It, or a module that it is in.
    for (size_t end = 0; end != std::string::npos;) {
      end = module.find('.', end + 1);
      STRATA_ASSIGN_OR_RETURN(
          const bool fits, OrInFile("modules_to_save",
                                    PatternFits(saved, module.substr(0, end))));
      if (fits) return true;
    }
  }
  return false;
}

absl::StatusOr<bool> LoraTargets::OrInFile(
    const char* field, const absl::StatusOr<bool>& fits) const {
  if (fits.ok()) return fits;
  return InFile(Concat(path_, ": ", field), fits.status());
}

}  // namespace strata
