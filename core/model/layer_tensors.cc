#include "core/model/layer_tensors.h"

#include <map>

namespace strata {
namespace {

class WeightTotals {
 public:
  void Add(const WeightView& view, const LowRankUpdate& update = {}) {
    if (view.data == nullptr) return;
    WeightView served = view;
    if (update.is_present()) served.type = update.merged_type;
    bytes_of_[served.type] += served.NumBytes();
  }

  void Store(Checkpoint* checkpoint) const {
    int64_t largest = -1;
    checkpoint->weight_bytes = 0;
    for (const auto& [type, bytes] : bytes_of_) {
      checkpoint->weight_bytes += bytes;
      if (bytes <= largest) continue;
      largest = bytes;
      checkpoint->weight_format = DTypeName(type);
    }
  }

 private:
  std::map<DType, int64_t> bytes_of_;
};

}  // namespace

int64_t DimSize(Dim dim, const ModelConfig& config) {
  switch (dim) {
    case Dim::kHidden:
      return config.hidden_size;
    case Dim::kIntermediate:
      return config.intermediate_size;
    case Dim::kQuery:
      return int64_t{config.num_heads} * config.head_dim;
    case Dim::kKeyValue:
      return int64_t{config.num_kv_heads} * config.head_dim;
    case Dim::kHead:
      return config.head_dim;
  }
  return 0;
}

void SetWeightTotals(Checkpoint* checkpoint) {
  WeightTotals totals;
  totals.Add(checkpoint->embedding);
  totals.Add(checkpoint->final_norm);
  const bool is_tied = checkpoint->head.data == checkpoint->embedding.data;
  if (!is_tied || checkpoint->head_update.is_present()) {
    totals.Add(checkpoint->head, checkpoint->head_update);
  }
  for (size_t i = 0; i < checkpoint->layers.size(); ++i) {
    const LayerWeights& layer = checkpoint->layers[i];
    const LayerUpdates updates = checkpoint->UpdatesOf(i);
    for (const LayerMatrix& entry : kLayerMatrices) {
      totals.Add(layer.*entry.view, updates.*entry.update);
    }
    for (const LayerVector& entry : kLayerVectors) {
      totals.Add(layer.*entry.view);
    }
  }
  totals.Store(checkpoint);
}

}  // namespace strata
