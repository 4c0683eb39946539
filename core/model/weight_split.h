#ifndef CORE_MODEL_WEIGHT_SPLIT_H_
#define CORE_MODEL_WEIGHT_SPLIT_H_

#include "absl/status/status.h"
#include "core/model/checkpoint.h"
#include "core/model/model_config.h"

namespace strata {

// What of a model stays together where several devices compute it
// (kernels/parallel): WeightView::split_unit.
struct SplitUnits {
  explicit SplitUnits(const ModelConfig& config)
      : query(config.num_heads / config.num_kv_heads * config.head_dim),
        key_value(config.head_dim) {}

  int query;      // outputs of wq, inputs of wo: heads that share K and V
  int key_value;  // outputs of wk, wv: a head
  // A block of quantised weights.
  int intermediate = 32;  // outputs of gate, up, inputs of down
  int vocab = 32;         // outputs of the head
};

// The same weights, with WeightView::split and split_unit set.
LayerWeights SplitLayer(LayerWeights layer, const SplitUnits& units);
WeightView SplitHead(WeightView head, const SplitUnits& units);

// Whether the weights, with an adapter's updates, can be split over `num_ranks`
// devices.  INVALID_ARGUMENT: what does not divide, or whose blocks would be
// cut (by the name of the tensor), and which numbers do where that helps.
// REQUIRES: num_ranks > 0.
absl::Status CheckSplit(const Checkpoint& checkpoint, int num_ranks);

}  // namespace strata

#endif  // CORE_MODEL_WEIGHT_SPLIT_H_
