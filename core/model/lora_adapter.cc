#include "core/model/lora_adapter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "core/model/file_error.h"
#include "core/model/layer_tensors.h"
#include "core/model/lora_config.h"
#include "core/model/safetensors.h"
#include "kernels/cpu/dequantize.h"

namespace strata {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kLoraA = ".lora_A.weight";
constexpr std::string_view kLoraB = ".lora_B.weight";

// What an update may add to a weight.  No training comes near it, and with the
// products of some such matrices F32 is at its end.
constexpr float kLargestUpdate = 1e6f;

// A tensor of the model, by which the adapter may name it.
struct Target {
  WeightView* view;
  LowRankUpdate* update = nullptr;  // null: takes none
  bool is_vector = false;
};

// The model's tensors under their Hugging Face names, whatever its files call
// them.  `updates` are as many as layers.
std::map<std::string, Target, std::less<>> TargetsOf(Checkpoint* checkpoint) {
  std::map<std::string, Target, std::less<>> targets = {
      {"model.embed_tokens.weight", {&checkpoint->embedding}},
      {"model.norm.weight",
       {.view = &checkpoint->final_norm, .is_vector = true}},
      {"lm_head.weight", {&checkpoint->head, &checkpoint->head_update}}};
  for (size_t i = 0; i < checkpoint->layers.size(); ++i) {
    const std::string prefix = Concat("model.layers.", i, ".");
    LayerWeights& layer = checkpoint->layers[i];
    for (const LayerMatrix& entry : kLayerMatrices) {
      targets[prefix + entry.hugging_face] = {
          &(layer.*entry.view), &(checkpoint->layer_updates[i].*entry.update)};
    }
    for (const LayerVector& entry : kLayerVectors) {
      WeightView& view = layer.*entry.view;
      if (view.data == nullptr) continue;
      targets[prefix + entry.hugging_face] = {.view = &view, .is_vector = true};
    }
  }
  return targets;
}

// In quotes; long enough for every name that PEFT gives.
std::string Named(std::string_view tensor) { return Quote(tensor, 80); }

// Removes `suffix` from the end of `text`, if it is there.
bool ConsumeEnd(std::string_view suffix, std::string* text) {
  if (!text->ends_with(suffix)) return false;
  text->resize(text->size() - suffix.size());
  return true;
}

// Whether the module whose weight or bias `tensor` is, or one that it is in
// ("model.layers.0.mlp"), has a name that ends with `end`.
bool IsInModule(std::string tensor, std::string_view end) {
  ConsumeEnd(".weight", &tensor) || ConsumeEnd(".bias", &tensor);
  std::string_view module = tensor;
  while (!module.ends_with(end)) {
    const size_t dot = module.rfind('.');
    if (dot == std::string_view::npos) return false;
    module = module.substr(0, dot);
  }
  return true;
}

// The largest magnitude in `view`; NaN or infinite where one is not finite.
float LargestIn(const WeightView& view) {
  std::vector<float> row(view.cols);
  float largest = 0.0f;
  for (int64_t i = 0; i < view.rows; ++i) {
    cpu::DequantizeRow(view, i, row.data());
    for (const float value : row) {
      if (!std::isfinite(value)) return value;
      largest = std::max(largest, std::abs(value));
    }
  }
  return largest;
}

DType MergedType(DType base, bool exact) {
  if (exact) return DType::kF32;
  return base == DType::kQ4_0 || base == DType::kQ4_1 ? DType::kQ8_0 : base;
}

class AdapterBinder {
 public:
  AdapterBinder(const MappedFile& file, const TensorMap& tensors,
                const LoraConfig& config, bool exact, Checkpoint* checkpoint)
      : file_(file),
        tensors_(tensors),
        config_(config),
        exact_(exact),
        checkpoint_(checkpoint),
        targets_(TargetsOf(checkpoint)) {}

  absl::StatusOr<AdapterSummary> Bind() {
    // Updates come after what they are added to.
    for (const auto& [name, tensor] : tensors_) {
      if (name.ends_with(kLoraA) || name.ends_with(kLoraB)) continue;
      STRATA_RETURN_IF_ERROR(Replace(name, tensor));
    }
    for (const auto& [name, tensor] : tensors_) {
      if (!name.ends_with(kLoraA) && !name.ends_with(kLoraB)) continue;
      STRATA_RETURN_IF_ERROR(Update(name));
    }
    STRATA_RETURN_IF_ERROR(CheckSavedModules());
    if (merged_types_.empty() && summary_.num_replaced == 0) {
      return Malformed(file_.path(), "has no tensors");
    }
    for (const DType type : merged_types_) {
      summary_.kept_as += summary_.kept_as.empty() ? "" : ", ";
      summary_.kept_as += DTypeName(type);
    }
    return summary_;
  }

 private:
  // A tensor that was trained as a whole.
  absl::Status Replace(const std::string& name, const StoredTensor& tensor) {
    std::string own = name;
    // What PEFT calls a matrix that has an update as well.
    if (ConsumeEnd(".base_layer.weight", &own)) own += ".weight";
    STRATA_ASSIGN_OR_RETURN(const Target target, Find(name, own));
    WeightView view = *target.view;
    view.interleaved_head_dim = 0;
    std::vector<int64_t> shape = {view.rows, view.cols};
    if (target.is_vector) {
      // An interleaved bias is a column.
      view.cols = std::max(view.rows, view.cols);
      view.rows = 1;
      shape = {view.cols};
    }
    STRATA_RETURN_IF_ERROR(Read(name, tensor, shape, &view).status());
    if (!replaced_.insert(own).second) {
      return Malformed(file_.path(), Named(name), " stands twice");
    }
    *target.view = view;
    ++summary_.num_replaced;
    return absl::OkStatus();
  }

  // A tensor lora_A or lora_B; both of the pair when it is the former.
  absl::Status Update(const std::string& name) {
    const bool is_a = name.ends_with(kLoraA);
    const std::string path =
        name.substr(0, name.size() - (is_a ? kLoraA : kLoraB).size());
    const std::string other = path + std::string(is_a ? kLoraB : kLoraA);
    const auto pair = tensors_.find(other);
    if (pair == tensors_.end()) {
      return Malformed(file_.path(), Named(name), " has no ", Named(other));
    }
    if (!is_a) return absl::OkStatus();  // bound with its lora_A
    STRATA_ASSIGN_OR_RETURN(const Target target, Find(name, path + ".weight"));
    if (target.update == nullptr) return UnknownTensor(name);

    const std::string module = path.substr(kPrefix.size());
    STRATA_ASSIGN_OR_RETURN(const bool is_target,
                            config_.targets().Include(module));
    if (!is_target) {
      return Malformed(file_.path(), Named(name), " is of a module that ",
                       "target_modules, exclude_modules, modules_to_save or ",
                       "layers_to_transform of adapter_config.json leaves out");
    }
    STRATA_ASSIGN_OR_RETURN(const int rank, config_.RankOf(module));
    LowRankUpdate update;
    STRATA_ASSIGN_OR_RETURN(update.scale, config_.ScaleOf(module, rank));
    update.merged_type = MergedType(target.view->type, exact_);
    update.a = {.rows = rank, .cols = target.view->cols};
    update.b = {.rows = target.view->rows, .cols = rank};
    STRATA_ASSIGN_OR_RETURN(const float largest_a,
                            Read(name, tensors_.find(name)->second,
                                 {update.a.rows, update.a.cols}, &update.a));
    STRATA_ASSIGN_OR_RETURN(
        const float largest_b,
        Read(other, pair->second, {update.b.rows, update.b.cols}, &update.b));
    const float bound = std::abs(update.scale) * rank * largest_a * largest_b;
    if (!(bound <= kLargestUpdate)) {
      return Malformed(file_.path(), Named(name), " and ", Named(other),
                       " with lora_alpha / r = ", update.scale, " add up to ",
                       bound, " to a weight, allowed are up to ",
                       kLargestUpdate);
    }
    *target.update = update;
    merged_types_.insert(update.merged_type);
    summary_.rank = std::max(summary_.rank, rank);
    ++summary_.num_merged;
    return absl::OkStatus();
  }

  // The tensor of the model that the adapter calls `own`; errors speak of
  // `name`.
  absl::StatusOr<Target> Find(const std::string& name,
                              const std::string& own) const {
    if (!own.starts_with(kPrefix)) return UnknownTensor(name);
    const auto it = targets_.find(std::string_view(own).substr(kPrefix.size()));
    return it != targets_.end() ? it->second
                                : absl::StatusOr<Target>(UnknownTensor(name));
  }

  absl::Status UnknownTensor(const std::string& name) const {
    return Malformed(
        file_.path(), "the model, ", checkpoint_->config.architecture, " of ",
        checkpoint_->config.num_layers, " layers, has nothing for ",
        Named(name), "; expected ", kPrefix,
        "NAME with NAME = a tensor of it, or lora_A.weight and lora_B.weight "
        "of one of its linear layers");
  }

  // Points `view` at `tensor`; the largest magnitude.
  absl::StatusOr<float> Read(const std::string& name,
                             const StoredTensor& tensor,
                             const std::vector<int64_t>& shape,
                             WeightView* view) const {
    if (tensor.shape != shape) {
      return Malformed(file_.path(), Named(name), " is ",
                       ShapeText(tensor.shape), ", expected ",
                       ShapeText(shape));
    }
    if (!tensor.type) {
      return Unsupported(file_.path(), Named(name), " is ", tensor.type_name,
                         ", which is not supported; F32, F16 and BF16 are");
    }
    view->data = tensor.bytes.data();
    view->type = *tensor.type;
    const float largest = LargestIn(*view);
    if (!std::isfinite(largest)) {
      return Malformed(file_.path(), Named(name), " holds ",
                       std::isnan(largest) ? "a NaN" : "an infinity",
                       ", expected finite numbers");
    }
    return largest;
  }

  // As PEFT, takes every module whose name ends with one of modules_to_save,
  // with all that is in it.
  absl::Status CheckSavedModules() const {
    for (const std::string& end : config_.modules_to_save()) {
      bool is_found = false;
      for (const auto& [tensor, target] : targets_) {
        if (!IsInModule(tensor, end)) continue;
        is_found = true;
        const std::string name = Concat(kPrefix, tensor);
        if (replaced_.contains(name)) continue;
        return Malformed(file_.path(), "lacks ", Named(name),
                         ", which modules_to_save of adapter_config.json (",
                         Quote(end), ") demands");
      }
      if (is_found) continue;
      return Malformed(file_.path(), "modules_to_save of adapter_config.json ",
                       "names ", Quote(end),
                       ", which is no module of the model");
    }
    return absl::OkStatus();
  }

  const MappedFile& file_;
  const TensorMap& tensors_;
  const LoraConfig& config_;
  const bool exact_;
  Checkpoint* const checkpoint_;
  const std::map<std::string, Target, std::less<>> targets_;
  AdapterSummary summary_;
  std::set<std::string> replaced_;  // with the prefix
  std::set<DType> merged_types_;
};

}  // namespace

absl::StatusOr<AdapterSummary> ApplyLoraAdapter(const std::string& directory,
                                                bool exact,
                                                Checkpoint* checkpoint) {
  STRATA_ASSIGN_OR_RETURN(const auto json,
                          MappedFile::Open(directory + "/adapter_config.json"));
  STRATA_ASSIGN_OR_RETURN(const LoraConfig config,
                          LoraConfig::Parse(json->path(), json->text()));
  STRATA_ASSIGN_OR_RETURN(
      auto file, MappedFile::Open(directory + "/adapter_model.safetensors"));
  STRATA_ASSIGN_OR_RETURN(const TensorMap tensors, ReadSafetensors(*file));
  checkpoint->layer_updates.assign(checkpoint->layers.size(), {});
  STRATA_ASSIGN_OR_RETURN(
      AdapterSummary summary,
      AdapterBinder(*file, tensors, config, exact, checkpoint).Bind());
  SetWeightTotals(checkpoint);
  checkpoint->files.push_back(std::move(file));
  return summary;
}

}  // namespace strata
