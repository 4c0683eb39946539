#include "core/packed_model.h"

#include <cstddef>

namespace strata {
namespace {

// null where the model has no such vector.
const float* Floats(const WeightView& view, Backend* backend) {
  return view.data != nullptr ? backend->NewFloats(view) : nullptr;
}

PackedLayer PackLayer(const LayerWeights& layer, float eps, Backend* backend) {
  PackedLayer packed;
  packed.attention_norm = {Floats(layer.attention_norm, backend), eps};
  packed.wq = backend->Pack(layer.wq);
  packed.wk = backend->Pack(layer.wk);
  packed.wv = backend->Pack(layer.wv);
  packed.wo = backend->Pack(layer.wo);
  packed.bq = Floats(layer.bq, backend);
  packed.bk = Floats(layer.bk, backend);
  packed.bv = Floats(layer.bv, backend);
  packed.bo = Floats(layer.bo, backend);
  packed.q_norm = {Floats(layer.q_norm, backend), eps};
  packed.k_norm = {Floats(layer.k_norm, backend), eps};
  packed.mlp_norm = {Floats(layer.mlp_norm, backend), eps};
  packed.gate = backend->Pack(layer.gate);
  packed.up = backend->Pack(layer.up);
  packed.down = backend->Pack(layer.down);
  return packed;
}

}  // namespace

PackedModel PackModel(const Checkpoint& checkpoint, Backend* backend,
                      const std::function<void(int)>& progress) {
  const ModelConfig& config = checkpoint.config;
  PackedModel model;
  model.config = config;
  model.embedding = checkpoint.embedding;
  for (const LayerWeights& layer : checkpoint.layers) {
    model.layers.push_back(PackLayer(layer, config.rms_norm_eps, backend));
    progress(static_cast<int>(model.layers.size()));
  }
  model.final_norm = {Floats(checkpoint.final_norm, backend),
                      config.rms_norm_eps};
  model.head = backend->Pack(checkpoint.head);
  const WeightView inv_freq = {
      .data = reinterpret_cast<const std::byte*>(config.rope_inv_freq.data()),
      .type = DType::kF32,
      .rows = 1,
      .cols = static_cast<int64_t>(config.rope_inv_freq.size())};
  model.inv_freq = backend->NewFloats(inv_freq);
  return model;
}

}  // namespace strata
