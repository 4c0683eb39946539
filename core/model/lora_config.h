#ifndef CORE_MODEL_LORA_CONFIG_H_
#define CORE_MODEL_LORA_CONFIG_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/lora_targets.h"

namespace strata {

// What an adapter_config.json of PEFT (peft_type LORA) says about merging.
class LoraConfig {
 public:
  // UNIMPLEMENTED, by name, for variants of LoRA and for every field that
  // Strata does not know, unless it is null, false, 0 or empty.  Errors begin
  // with `path`.
  static absl::StatusOr<LoraConfig> Parse(const std::string& path,
                                          std::string_view text);

  int rank() const { return rank_; }  // where no pattern says otherwise
  // Ends of the names of modules that were trained as a whole.
  const std::vector<std::string>& modules_to_save() const {
    return modules_to_save_;
  }

  const LoraTargets& targets() const { return targets_; }

  // Of one module ("model.layers.0.self_attn.q_proj").  As in PEFT a pattern is
  // a regular expression for all of the name, or for what follows one of its
  // dots.  PEFT takes the first of several that fit, in an order that its own
  // files lose; they are INVALID_ARGUMENT here unless they agree.
  absl::StatusOr<int> RankOf(const std::string& module) const;
  // lora_alpha / rank, or lora_alpha / sqrt(rank) with use_rslora.
  absl::StatusOr<float> ScaleOf(const std::string& module, int rank) const;

 private:
  using Patterns = std::vector<std::pair<std::string, double>>;

  absl::StatusOr<double> Find(const char* field, const Patterns& patterns,
                              const std::string& module, double fallback) const;

  std::string path_;
  int rank_ = 0;
  double alpha_ = 0;
  bool use_rslora_ = false;
  Patterns rank_patterns_;
  Patterns alpha_patterns_;
  LoraTargets targets_;
  std::vector<std::string> modules_to_save_;
};

}  // namespace strata

#endif  // CORE_MODEL_LORA_CONFIG_H_
