#ifndef CORE_MODEL_LORA_TARGETS_H_
#define CORE_MODEL_LORA_TARGETS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/json_fields.h"

namespace strata {

// Which modules an adapter_config.json gives an update: target_modules,
// exclude_modules, modules_to_save and layers_to_transform, by PEFT's
// check_target_module_exists.
class LoraTargets {
 public:
  // UNIMPLEMENTED for a layers_pattern other than "layers".  Errors begin with
  // the path of `fields`.
  static absl::StatusOr<LoraTargets> Parse(const JsonFields& fields);

  // Whether `module` ("model.layers.0.self_attn.q_proj") has one.  Without
  // target_modules all have: PEFT's own files name them, and what its defaults
  // are depends on its version.
  absl::StatusOr<bool> Include(const std::string& module) const;

 private:
  // Ends of names, or a regular expression.
  struct Modules {
    std::vector<std::string> ends;
    std::string pattern;

    bool is_empty() const { return ends.empty() && pattern.empty(); }
  };

  static absl::StatusOr<Modules> ReadModules(const JsonFields& fields,
                                             const char* field);
  absl::StatusOr<bool> Fits(const char* field, const Modules& modules,
                            const std::string& module) const;
  absl::StatusOr<bool> IsSaved(const std::string& module) const;
  absl::StatusOr<bool> OrInFile(const char* field,
                                const absl::StatusOr<bool>& fits) const;

  std::string path_;
  bool is_all_linear_ = false;  // targets_ is empty then
  Modules targets_;             // empty: all
  Modules excluded_;
  Modules saved_;  // these, and what is in them, are trained as a whole
  std::optional<std::vector<int>> layers_;  // nothing: all
};

}  // namespace strata

#endif  // CORE_MODEL_LORA_TARGETS_H_
