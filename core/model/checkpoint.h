#ifndef CORE_MODEL_CHECKPOINT_H_
#define CORE_MODEL_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/mapped_file.h"
#include "core/model/model_config.h"
#include "core/text/tokenizer_spec.h"
#include "kernels/dtype.h"

namespace strata {

// Weights of one layer, in the mapped file.  Matrices are [outputs, inputs],
// vectors have one row; but bq and bk with interleaved_head_dim > 0 are columns
// [n, 1], so that StoredRow gives their order.
struct LayerWeights {
  WeightView attention_norm;  // [hidden]
  WeightView wq;              // [num_heads * head_dim, hidden]
  WeightView wk;              // [num_kv_heads * head_dim, hidden]
  WeightView wv;              // [num_kv_heads * head_dim, hidden]
  WeightView wo;              // [hidden, num_heads * head_dim]
  // Absent but for Qwen2, and for Llama and Qwen3 with attention_bias.
  WeightView bq;              // [num_heads * head_dim]
  WeightView bk;              // [num_kv_heads * head_dim]
  WeightView bv;              // [num_kv_heads * head_dim]
  WeightView bo;              // [hidden]; absent in Qwen2 too
  WeightView q_norm, k_norm;  // [head_dim]; absent but for Qwen3
  WeightView mlp_norm;        // [hidden]
  WeightView gate, up;        // [intermediate, hidden]
  WeightView down;            // [hidden, intermediate]
};

// What an adapter adds to a matrix [outputs, inputs]: scale * b * a, in the
// model's order of outputs (not the interleaved one of some files).
struct LowRankUpdate {
  WeightView a;  // [rank, inputs]; absent: nothing is added
  WeightView b;  // [outputs, rank]
  float scale = 0.0f;
  DType merged_type = DType::kF32;  // in which the sum is kept

  bool is_present() const { return a.data != nullptr; }
};

// Of the matrices of one layer.
struct LayerUpdates {
  LowRankUpdate wq, wk, wv, wo, gate, up, down;
};

// A model as its files hold it: mapped, every size and offset checked, nothing
// copied. Owns the mappings that the views point into.
struct Checkpoint {
  ModelConfig config;
  WeightView embedding;  // [vocab, hidden]
  std::vector<LayerWeights> layers;
  WeightView final_norm;  // [hidden]
  WeightView head;        // [vocab, hidden]; the embedding where tied
  // Of an adapter (lora_adapter.h), which are added when the weights are
  // packed.
  LowRankUpdate head_update;
  std::vector<LayerUpdates> layer_updates;  // as many as layers; empty: none
  // Of what is served, updates merged.
  std::string weight_format;  // of most weight bytes: "BF16", "Q4_1", ...
  int64_t weight_bytes = 0;   // of all tensors used, each once
  std::optional<TokenizerSpec> tokenizer;  // absent: tokens only
  std::vector<int32_t> eos_ids;  // any of these ends a text; may be empty
  std::vector<std::unique_ptr<MappedFile>> files;

  LayerUpdates UpdatesOf(size_t layer) const {
    return layer_updates.empty() ? LayerUpdates() : layer_updates[layer];
  }
};

// Loads a Hugging Face directory (config.json, *.safetensors, tokenizer.json,
// generation_config.json) or a .gguf file.  Errors: NOT_FOUND, INVALID_ARGUMENT
// (malformed), UNIMPLEMENTED (a model, quantisation or feature that Strata does
// not run, by name); the message is one line that begins with the file's path.
absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path);

}  // namespace strata

#endif  // CORE_MODEL_CHECKPOINT_H_
