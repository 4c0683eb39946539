#include "tests/core/model/tiny_model.h"

#include <nlohmann/json.hpp>

namespace strata {
namespace {

constexpr int kLayers = 2;
constexpr int64_t kHidden = 8, kIntermediate = 12, kQuery = 24, kKeyValue = 12,
                  kHeadDim = 6, kVocab = 5;

struct Format {
  int number;  // in GGUF
  int64_t block_elements;
  int64_t block_bytes;
};

const Format& FormatOf(const std::string& type) {
  static const std::map<std::string, Format> formats = {
      {"F32", {0, 1, 4}},    {"F16", {1, 1, 2}},      {"BF16", {30, 1, 2}},
      {"F64", {28, 1, 8}},   {"Q8_0", {8, 32, 34}},   {"Q4_0", {2, 32, 18}},
      {"Q4_1", {3, 32, 20}}, {"Q4_K", {12, 256, 144}}};
  return formats.at(type);
}

std::string Zeros(const TinyTensor& tensor) {
  int64_t elements = 1;
  for (const int64_t dim : tensor.shape) elements *= dim;
  const Format& format = FormatOf(tensor.type);
  return std::string(elements / format.block_elements * format.block_bytes,
                     '\0');
}

}  // namespace

TinyModel TinyModel::HuggingFace(const std::string& type) {
  TinyModel model;
  model.type = type;
  const auto add = [&model](const std::string& name,
                            std::vector<int64_t> shape) {
    model.tensors[name] = {.shape = std::move(shape)};
  };
  add("model.embed_tokens.weight", {kVocab, kHidden});
  add("model.norm.weight", {kHidden});
  add("lm_head.weight", {kVocab, kHidden});
  for (int i = 0; i < kLayers; ++i) {
    const std::string p = "model.layers." + std::to_string(i) + ".";
    add(p + "input_layernorm.weight", {kHidden});
    add(p + "self_attn.q_proj.weight", {kQuery, kHidden});
    add(p + "self_attn.k_proj.weight", {kKeyValue, kHidden});
    add(p + "self_attn.v_proj.weight", {kKeyValue, kHidden});
    add(p + "self_attn.o_proj.weight", {kHidden, kQuery});
    add(p + "post_attention_layernorm.weight", {kHidden});
    add(p + "mlp.gate_proj.weight", {kIntermediate, kHidden});
    add(p + "mlp.up_proj.weight", {kIntermediate, kHidden});
    add(p + "mlp.down_proj.weight", {kHidden, kIntermediate});
    if (type == "qwen2") {
      add(p + "self_attn.q_proj.bias", {kQuery});
      add(p + "self_attn.k_proj.bias", {kKeyValue});
      add(p + "self_attn.v_proj.bias", {kKeyValue});
    }
    if (type == "qwen3") {
      add(p + "self_attn.q_norm.weight", {kHeadDim});
      add(p + "self_attn.k_norm.weight", {kHeadDim});
    }
  }
  return model;
}

TinyModel TinyModel::Gguf(const std::string& architecture) {
  TinyModel model;
  model.type = architecture;
  const auto add = [&model](const std::string& name,
                            std::vector<int64_t> shape) {
    model.tensors[name] = {.shape = std::move(shape)};
  };
  add("token_embd.weight", {kVocab, kHidden});
  add("output_norm.weight", {kHidden});
  add("output.weight", {kVocab, kHidden});
  for (int i = 0; i < kLayers; ++i) {
    const std::string p = "blk." + std::to_string(i) + ".";
    add(p + "attn_norm.weight", {kHidden});
    add(p + "attn_q.weight", {kQuery, kHidden});
    add(p + "attn_k.weight", {kKeyValue, kHidden});
    add(p + "attn_v.weight", {kKeyValue, kHidden});
    add(p + "attn_output.weight", {kHidden, kQuery});
    add(p + "ffn_norm.weight", {kHidden});
    add(p + "ffn_gate.weight", {kIntermediate, kHidden});
    add(p + "ffn_up.weight", {kIntermediate, kHidden});
    add(p + "ffn_down.weight", {kHidden, kIntermediate});
    if (architecture == "qwen2") {
      add(p + "attn_q.bias", {kQuery});
      add(p + "attn_k.bias", {kKeyValue});
      add(p + "attn_v.bias", {kKeyValue});
    }
    if (architecture == "qwen3") {
      add(p + "attn_q_norm.weight", {kHeadDim});
      add(p + "attn_k_norm.weight", {kHeadDim});
    }
  }
  const std::string p = architecture + ".";
  model.metadata.String("general.architecture", architecture)
      .U32(p + "block_count", kLayers)
      .U32(p + "context_length", 64)
      .U32(p + "embedding_length", kHidden)
      .U32(p + "feed_forward_length", kIntermediate)
      .U32(p + "attention.head_count", kQuery / kHeadDim)
      .U32(p + "attention.head_count_kv", kKeyValue / kHeadDim)
      .U32(p + "attention.key_length", kHeadDim)
      .F32(p + "attention.layer_norm_rms_epsilon", 1e-5f);
  return model;
}

std::string TinyModel::ConfigJson() const {
  nlohmann::json config = {{"model_type", type},
                           {"num_hidden_layers", kLayers},
                           {"hidden_size", kHidden},
                           {"intermediate_size", kIntermediate},
                           {"num_attention_heads", kQuery / kHeadDim},
                           {"num_key_value_heads", kKeyValue / kHeadDim},
                           {"head_dim", kHeadDim},
                           {"vocab_size", kVocab},
                           {"max_position_embeddings", 64},
                           {"eos_token_id", 1}};
  config.merge_patch(nlohmann::json::parse(config_changes));
  return config.dump();
}

std::string TinyModel::SafetensorsFile() const {
  nlohmann::json header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = data.size();
    data += Zeros(tensor);
    header[name] = {{"dtype", tensor.type},
                    {"shape", tensor.shape},
                    {"data_offsets", {begin, data.size()}}};
  }
  return Safetensors(header.dump(), data);
}

std::string TinyModel::GgufFile() const {
  GgufBuilder builder = metadata;
  for (const auto& [name, tensor] : tensors) {
    const std::vector<uint64_t> dims(tensor.shape.rbegin(),
                                     tensor.shape.rend());
    builder.Tensor(name, dims, FormatOf(tensor.type).number, Zeros(tensor));
  }
  return builder.Build();
}

}  // namespace strata
