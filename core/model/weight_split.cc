#include "core/model/weight_split.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "core/model/layer_tensors.h"

namespace strata {
namespace {

absl::Status CheckHeads(int num_kv_heads, int num_ranks) {
  if (num_kv_heads % num_ranks == 0) return absl::OkStatus();
  std::vector<int> divisors;
  for (int n = 1; n <= num_kv_heads; ++n) {
    if (num_kv_heads % n == 0) divisors.push_back(n);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the model has ", num_kv_heads,
                   " KV heads, and each device takes as many: allowed are ",
                   absl::StrJoin(divisors, ", ")));
}

// Each device has a unit.
absl::Status CheckUnits(const char* what, int count, int unit, int num_ranks) {
  const int units = (count + unit - 1) / unit;
  if (units >= num_ranks) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the model has ", what, " ", count, ", of which a device ",
                   "takes ", unit, " or more: allowed are at most ", units));
}

// The blocks of one head's inputs of wo are its own.
absl::Status CheckBlocks(const Checkpoint& checkpoint, int unit_cols) {
  for (size_t i = 0; i < checkpoint.layers.size(); ++i) {
    const LowRankUpdate update = checkpoint.UpdatesOf(i).wo;
    const DType type =
        update.is_present() ? update.merged_type : checkpoint.layers[i].wo.type;
    if (unit_cols % BlockElements(type) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("attn_output (o_proj) of layer ", i, " is ",
                     DTypeName(type), ", in blocks of ", BlockElements(type),
                     " inputs, and a device would take ", unit_cols,
                     ": allowed are multiples of a block, or other weights"));
  }
  return absl::OkStatus();
}

void SetSplit(WeightView* view, Split split, int unit) {
  view->split = split;
  view->split_unit = unit;
}

}  // namespace

LayerWeights SplitLayer(LayerWeights layer, const SplitUnits& units) {
  SetSplit(&layer.wq, Split::kOutputs, units.query);
  SetSplit(&layer.bq, Split::kOutputs, units.query);
  for (WeightView* view : {&layer.wk, &layer.wv, &layer.bk, &layer.bv}) {
    SetSplit(view, Split::kOutputs, units.key_value);
  }
  SetSplit(&layer.wo, Split::kInputs, units.query);
  SetSplit(&layer.gate, Split::kOutputs, units.intermediate);
  SetSplit(&layer.up, Split::kOutputs, units.intermediate);
  SetSplit(&layer.down, Split::kInputs, units.intermediate);
  return layer;
}

WeightView SplitHead(WeightView head, const SplitUnits& units) {
  SetSplit(&head, Split::kOutputs, units.vocab);
  return head;
}

absl::Status CheckSplit(const Checkpoint& checkpoint, int num_ranks) {
  const ModelConfig& config = checkpoint.config;
  const SplitUnits units(config);
  STRATA_RETURN_IF_ERROR(CheckHeads(config.num_kv_heads, num_ranks));
  STRATA_RETURN_IF_ERROR(CheckUnits("intermediate_size",
                                    config.intermediate_size,
                                    units.intermediate, num_ranks));
  STRATA_RETURN_IF_ERROR(
      CheckUnits("vocab_size", config.vocab_size, units.vocab, num_ranks));
  return CheckBlocks(checkpoint,
                     units.query * (config.num_kv_heads / num_ranks));
}

}  // namespace strata
