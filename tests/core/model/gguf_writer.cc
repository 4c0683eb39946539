#include "tests/core/model/gguf_writer.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/check.h"
#include "core/model/checkpoint.h"
#include "core/model/rope.h"
#include "kernels/cpu/dequantize.h"
#include "tests/core/model/quantize.h"

namespace strata {
namespace {

// ggml's numbers.
uint32_t TypeNumber(DType type) {
  switch (type) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ8_0:
      return 8;
    case DType::kBF16:
      return 30;
  }
  return 0;
}

class Converter {
 public:
  Converter(const Checkpoint& checkpoint, const GgufWriterOptions& options)
      : checkpoint_(checkpoint), config_(checkpoint.config), options_(options) {
    is_llama_ =
        config_.architecture == "llama" || config_.architecture == "mistral";
  }

  GgufBuilder Convert(float rope_theta) {
    Metadata(rope_theta);
    RopeFactors(rope_theta);
    Matrix("token_embd.weight", checkpoint_.embedding);
    if (!config_.tied_embeddings) Matrix("output.weight", checkpoint_.head);
    Vector("output_norm.weight", checkpoint_.final_norm);
    for (int i = 0; i < config_.num_layers; ++i) {
      Layer("blk." + std::to_string(i) + ".", checkpoint_.layers[i]);
    }
    return std::move(builder_);
  }

 private:
  void Metadata(float rope_theta) {
    const std::string architecture = is_llama_ ? "llama" : config_.architecture;
    const std::string p = architecture + ".";
    builder_.String("general.architecture", architecture)
        .U32(p + "block_count", config_.num_layers)
        .U32(p + "context_length", config_.max_positions)
        .U32(p + "embedding_length", config_.hidden_size)
        .U32(p + "feed_forward_length", config_.intermediate_size)
        .U32(p + "attention.head_count", config_.num_heads)
        .U32(p + "attention.head_count_kv", config_.num_kv_heads)
        .U32(p + "attention.key_length", config_.head_dim)
        .U32(p + "attention.value_length", config_.head_dim)
        .F32(p + "attention.layer_norm_rms_epsilon", config_.rms_norm_eps)
        .F32(p + "rope.freq_base", rope_theta);
    if (checkpoint_.eos_ids.empty()) return;
    builder_.U32("tokenizer.ggml.eos_token_id", checkpoint_.eos_ids[0]);
  }

  // What scaling divides the frequencies by.
  void RopeFactors(float rope_theta) {
    const std::vector<float> unscaled =
        RopeInvFreq(rope_theta, config_.head_dim);
    if (unscaled == config_.rope_inv_freq) return;
    std::vector<float> factors;
    for (size_t i = 0; i < unscaled.size(); ++i) {
      factors.push_back(unscaled[i] / config_.rope_inv_freq[i]);
    }
    builder_.Tensor("rope_freqs.weight", {factors.size()}, 0,
                    Quantize(DType::kF32, factors));
  }

  void Layer(const std::string& prefix, const LayerWeights& layer) {
    Vector(prefix + "attn_norm.weight", layer.attention_norm);
    Matrix(prefix + "attn_q.weight", layer.wq, /*is_rotated=*/true);
    Matrix(prefix + "attn_k.weight", layer.wk, /*is_rotated=*/true);
    Matrix(prefix + "attn_v.weight", layer.wv);
    Matrix(prefix + "attn_output.weight", layer.wo);
    Vector(prefix + "attn_q.bias", layer.bq, /*is_rotated=*/true);
    Vector(prefix + "attn_k.bias", layer.bk, /*is_rotated=*/true);
    Vector(prefix + "attn_v.bias", layer.bv);
    Vector(prefix + "attn_output.bias", layer.bo);
    Vector(prefix + "attn_q_norm.weight", layer.q_norm);
    Vector(prefix + "attn_k_norm.weight", layer.k_norm);
    Vector(prefix + "ffn_norm.weight", layer.mlp_norm);
    Matrix(prefix + "ffn_gate.weight", layer.gate);
    Matrix(prefix + "ffn_up.weight", layer.up);
    Matrix(prefix + "ffn_down.weight", layer.down);
  }

  // The rows in the order of the file.
  std::vector<float> Rows(const WeightView& view, bool is_rotated) const {
    WeightView stored = view;
    stored.interleaved_head_dim =
        is_rotated && is_llama_ ? config_.head_dim : 0;
    std::vector<float> values(view.rows * view.cols);
    for (int64_t row = 0; row < view.rows; ++row) {
      cpu::DequantizeRow(view, row,
                         values.data() + stored.StoredRow(row) * view.cols);
    }
    return values;
  }

  void Vector(const std::string& name, WeightView view,
              bool is_rotated = false) {
    if (view.data == nullptr) return;
    std::swap(view.rows, view.cols);  // [n, 1]
    const std::vector<float> values = Rows(view, is_rotated);
    builder_.Tensor(name, {values.size()}, 0, Quantize(DType::kF32, values));
  }

  void Matrix(const std::string& name, const WeightView& view,
              bool is_rotated = false) {
    const auto dims = {static_cast<uint64_t>(view.cols),
                       static_cast<uint64_t>(view.rows)};
    const bool fits = view.cols % BlockElements(options_.type) == 0;
    DType type = fits ? options_.type : DType::kF32;
    std::string data = Quantize(type, Rows(view, is_rotated));
    if (options_.store_rounded_as_f32) {
      const WeightView rounded{
          .data = reinterpret_cast<const std::byte*>(data.data()),
          .type = type,
          .rows = view.rows,
          .cols = view.cols};
      data = Quantize(DType::kF32, Rows(rounded, /*is_rotated=*/false));
      type = DType::kF32;
    }
    builder_.Tensor(name, dims, TypeNumber(type), data);
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const GgufWriterOptions options_;
  bool is_llama_ = false;
  GgufBuilder builder_;
};

}  // namespace

absl::StatusOr<GgufBuilder> ConvertToGguf(const std::string& directory,
                                          const GgufWriterOptions& options) {
  STRATA_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                          LoadCheckpoint(directory));
  std::ifstream file(directory + "/config.json");
  const nlohmann::json config = nlohmann::json::parse(file);
  return Converter(checkpoint, options)
      .Convert(config.value("rope_theta", 10000.0f));
}

absl::Status WriteGguf(const std::string& directory,
                       const GgufWriterOptions& options,
                       const std::string& path) {
  STRATA_ASSIGN_OR_RETURN(const GgufBuilder builder,
                          ConvertToGguf(directory, options));
  const std::string bytes = builder.Build();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? absl::OkStatus()
              : absl::InternalError(path + ": cannot be written");
}

}  // namespace strata
