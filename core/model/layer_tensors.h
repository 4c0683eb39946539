#ifndef CORE_MODEL_LAYER_TENSORS_H_
#define CORE_MODEL_LAYER_TENSORS_H_

#include <cstdint>

#include "core/model/checkpoint.h"
#include "core/model/model_description.h"

// The tensors of a layer: what files call them and which sizes they have.
namespace strata {

enum class Dim { kHidden, kIntermediate, kQuery, kKeyValue, kHead };

int64_t DimSize(Dim dim, const ModelConfig& config);

struct LayerMatrix {
  const char* hugging_face;  // after "model.layers.N."
  const char* gguf;          // after "blk.N."
  WeightView LayerWeights::*view;
  LowRankUpdate LayerUpdates::*update;
  Dim rows;
  Dim cols;
  bool is_rotated = false;  // RoPE turns its outputs
};

inline constexpr LayerMatrix kLayerMatrices[] = {
    {"self_attn.q_proj.weight", "attn_q.weight", &LayerWeights::wq,
     &LayerUpdates::wq, Dim::kQuery, Dim::kHidden, true},
    {"self_attn.k_proj.weight", "attn_k.weight", &LayerWeights::wk,
     &LayerUpdates::wk, Dim::kKeyValue, Dim::kHidden, true},
    {"self_attn.v_proj.weight", "attn_v.weight", &LayerWeights::wv,
     &LayerUpdates::wv, Dim::kKeyValue, Dim::kHidden},
    {"self_attn.o_proj.weight", "attn_output.weight", &LayerWeights::wo,
     &LayerUpdates::wo, Dim::kHidden, Dim::kQuery},
    {"mlp.gate_proj.weight", "ffn_gate.weight", &LayerWeights::gate,
     &LayerUpdates::gate, Dim::kIntermediate, Dim::kHidden},
    {"mlp.up_proj.weight", "ffn_up.weight", &LayerWeights::up,
     &LayerUpdates::up, Dim::kIntermediate, Dim::kHidden},
    {"mlp.down_proj.weight", "ffn_down.weight", &LayerWeights::down,
     &LayerUpdates::down, Dim::kHidden, Dim::kIntermediate},
};

using Presence = bool ModelDescription::*;  // null: always there

struct LayerVector {
  const char* hugging_face;
  const char* gguf;
  WeightView LayerWeights::*view;
  Dim size;
  Presence presence = nullptr;
  bool is_rotated = false;
};

inline constexpr LayerVector kLayerVectors[] = {
    {"input_layernorm.weight", "attn_norm.weight",
     &LayerWeights::attention_norm, Dim::kHidden},
    {"post_attention_layernorm.weight", "ffn_norm.weight",
     &LayerWeights::mlp_norm, Dim::kHidden},
    {"self_attn.q_proj.bias", "attn_q.bias", &LayerWeights::bq, Dim::kQuery,
     &ModelDescription::has_qkv_bias, true},
    {"self_attn.k_proj.bias", "attn_k.bias", &LayerWeights::bk, Dim::kKeyValue,
     &ModelDescription::has_qkv_bias, true},
    {"self_attn.v_proj.bias", "attn_v.bias", &LayerWeights::bv, Dim::kKeyValue,
     &ModelDescription::has_qkv_bias},
    {"self_attn.o_proj.bias", "attn_output.bias", &LayerWeights::bo,
     Dim::kHidden, &ModelDescription::has_output_bias},
    {"self_attn.q_norm.weight", "attn_q_norm.weight", &LayerWeights::q_norm,
     Dim::kHead, &ModelDescription::has_qk_norm},
    {"self_attn.k_norm.weight", "attn_k_norm.weight", &LayerWeights::k_norm,
     Dim::kHead, &ModelDescription::has_qk_norm},
};

// Sets weight_format and weight_bytes by what the views and updates are.
void SetWeightTotals(Checkpoint* checkpoint);

}  // namespace strata

#endif  // CORE_MODEL_LAYER_TENSORS_H_
