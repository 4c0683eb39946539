#include "core/model/hf_config.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/model/file_error.h"
#include "core/model/hf_rope.h"
#include "core/model/json_fields.h"

namespace strata {
namespace {

using nlohmann::json;

// Defaults of transformers' MistralConfig, Qwen2Config and Qwen3Config.
constexpr int kDefaultWindow = 4096;
constexpr int kDefaultMaxWindowLayers = 28;
constexpr int kQwen3HeadDim = 128;

absl::Status CheckArchitecture(const JsonFields& fields,
                               const std::string& type) {
  for (const char* known : {"llama", "mistral", "qwen2", "qwen3"}) {
    if (type == known) return absl::OkStatus();
  }
  if (type.empty()) return Malformed(fields.path(), "model_type is missing");
  return Unsupported(fields.path(), "model_type ", Quote(type),
                     " is not supported; llama, mistral, qwen2 and qwen3 are");
}

absl::Status CheckFeatures(const JsonFields& fields) {
  if (const json* quantization = fields.Find("quantization_config")) {
    std::string method = "unknown";
    if (quantization->is_object()) {
      STRATA_ASSIGN_OR_RETURN(method, JsonFields(fields.path(), *quantization,
                                                 "quantization_config")
                                          .StringOr("quant_method", method));
    }
    return Unsupported(fields.path(), "quantization_config ", Quote(method),
                       " is not supported; BF16, F16 and F32 weights are");
  }
  STRATA_ASSIGN_OR_RETURN(const std::string act,
                          fields.StringOr("hidden_act", "silu"));
  if (act != "silu") {
    return Unsupported(fields.path(), "hidden_act ", Quote(act),
                       " is not supported; silu is");
  }
  STRATA_ASSIGN_OR_RETURN(const bool mlp_bias,
                          fields.BoolOr("mlp_bias", false));
  if (mlp_bias) return Unsupported(fields.path(), "mlp_bias is not supported");
  return absl::OkStatus();
}

absl::Status CheckLayerTypes(const JsonFields& fields) {
  const json* types = fields.Find("layer_types");
  if (types == nullptr) return absl::OkStatus();
  if (!types->is_array())
    return Malformed(fields.path(), "layer_types is not a list");
  for (const json& type : *types) {
    if (!type.is_string())
      return Malformed(fields.path(),
                       "layer_types has a value that is no string");
    const std::string& name = type.get_ref<const std::string&>();
    if (name != "full_attention") {
      return Unsupported(fields.path(), "layer_types: ", Quote(name),
                         " is not supported; full_attention is");
    }
  }
  return absl::OkStatus();
}

// Refuses a window that some layer would apply to some position.
absl::Status CheckSlidingWindow(const JsonFields& fields,
                                const ModelConfig& config) {
  STRATA_RETURN_IF_ERROR(CheckLayerTypes(fields));
  const json* window_value = fields.Find("sliding_window");
  STRATA_ASSIGN_OR_RETURN(const int window,
                          fields.IntegerOr("sliding_window", kDefaultWindow));
  bool in_use = false;
  if (config.architecture == "mistral") {
    // Here null means none, and an absent key the default.
    const bool is_absent = !fields.HasKey("sliding_window");
    in_use =
        (is_absent || window_value != nullptr) && window < config.max_positions;
  } else if (config.architecture != "llama") {
    STRATA_ASSIGN_OR_RETURN(const bool use,
                            fields.BoolOr("use_sliding_window", false));
    STRATA_ASSIGN_OR_RETURN(
        const int first_layer,
        fields.IntegerOr("max_window_layers", kDefaultMaxWindowLayers));
    in_use =
        use && first_layer < config.num_layers && window < config.max_positions;
  }
  if (!in_use) return absl::OkStatus();
  return Unsupported(fields.path(), "sliding_window ", window,
                     " below max_position_embeddings ", config.max_positions,
                     " is not supported");
}

absl::StatusOr<int> NumKvHeads(const JsonFields& fields,
                               const ModelConfig& config) {
  const bool may_lack =
      config.architecture == "llama" || fields.HasKey("num_key_value_heads");
  if (may_lack)
    return fields.IntegerOr("num_key_value_heads", config.num_heads);
  return fields.Integer("num_key_value_heads");
}

absl::StatusOr<int> HeadDim(const JsonFields& fields,
                            const ModelConfig& config) {
  if (config.architecture == "qwen3")
    return fields.IntegerOr("head_dim", kQwen3HeadDim);
  if (fields.Has("head_dim")) return fields.Integer("head_dim");
  if (config.num_heads == 0 || config.hidden_size % config.num_heads != 0) {
    return Malformed(fields.path(), "hidden_size ", config.hidden_size,
                     " is not a multiple of num_attention_heads ",
                     config.num_heads);
  }
  return config.hidden_size / config.num_heads;
}

absl::Status ReadDimensions(const JsonFields& fields, ModelConfig* config) {
  STRATA_ASSIGN_OR_RETURN(config->num_layers,
                          fields.Integer("num_hidden_layers"));
  STRATA_ASSIGN_OR_RETURN(config->hidden_size, fields.Integer("hidden_size"));
  STRATA_ASSIGN_OR_RETURN(config->intermediate_size,
                          fields.Integer("intermediate_size"));
  STRATA_ASSIGN_OR_RETURN(config->num_heads,
                          fields.Integer("num_attention_heads"));
  STRATA_ASSIGN_OR_RETURN(config->num_kv_heads, NumKvHeads(fields, *config));
  STRATA_ASSIGN_OR_RETURN(config->head_dim, HeadDim(fields, *config));
  STRATA_ASSIGN_OR_RETURN(config->vocab_size, fields.Integer("vocab_size"));
  STRATA_ASSIGN_OR_RETURN(config->max_positions,
                          fields.Integer("max_position_embeddings"));
  STRATA_ASSIGN_OR_RETURN(const double eps,
                          fields.NumberOr("rms_norm_eps", 1e-6));
  config->rms_norm_eps = static_cast<float>(eps);
  STRATA_ASSIGN_OR_RETURN(config->tied_embeddings,
                          fields.BoolOr("tie_word_embeddings", false));
  return absl::OkStatus();
}

// eos_token_id: absent, one id or a list.
absl::Status ReadEosIds(const JsonFields& fields, int vocab_size,
                        std::vector<int32_t>* ids) {
  const json* value = fields.Find("eos_token_id");
  if (value == nullptr) return absl::OkStatus();
  const json list = value->is_array() ? *value : json::array({*value});
  ids->clear();
  for (const json& id : list) {
    if (!id.is_number_unsigned() ||
        id.get<uint64_t>() >= static_cast<uint64_t>(vocab_size)) {
      return Malformed(fields.path(),
                       "eos_token_id is not one or several ids below ",
                       vocab_size);
    }
    const auto token = static_cast<int32_t>(id.get<uint64_t>());
    if (std::ranges::find(*ids, token) == ids->end()) ids->push_back(token);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelDescription> ParseHfConfig(const std::string& path,
                                               std::string_view text) {
  STRATA_ASSIGN_OR_RETURN(const json root, ParseJsonObject(path, text));
  const JsonFields fields(path, root);
  ModelDescription description;
  ModelConfig& config = description.config;
  STRATA_ASSIGN_OR_RETURN(config.architecture,
                          fields.StringOr("model_type", ""));
  STRATA_RETURN_IF_ERROR(CheckArchitecture(fields, config.architecture));
  STRATA_RETURN_IF_ERROR(CheckFeatures(fields));
  STRATA_RETURN_IF_ERROR(ReadDimensions(fields, &config));
  // Before anything is sized by the numbers.
  STRATA_RETURN_IF_ERROR(InFile(path, config.ValidateDimensions()));
  STRATA_RETURN_IF_ERROR(CheckSlidingWindow(fields, config));
  STRATA_ASSIGN_OR_RETURN(config.rope_inv_freq,
                          ParseHfRope(fields, config.head_dim));
  STRATA_RETURN_IF_ERROR(InFile(path, config.Validate()));

  STRATA_ASSIGN_OR_RETURN(const bool attention_bias,
                          fields.BoolOr("attention_bias", false));
  const bool may_have_bias =
      config.architecture == "llama" || config.architecture == "qwen3";
  description.has_output_bias = may_have_bias && attention_bias;
  description.has_qkv_bias =
      description.has_output_bias || config.architecture == "qwen2";
  description.has_qk_norm = config.architecture == "qwen3";
  STRATA_RETURN_IF_ERROR(
      ReadEosIds(fields, config.vocab_size, &description.eos_ids));
  return description;
}

absl::Status ApplyGenerationConfig(const std::string& path,
                                   std::string_view text,
                                   ModelDescription* description) {
  STRATA_ASSIGN_OR_RETURN(const json root, ParseJsonObject(path, text));
  return ReadEosIds(JsonFields(path, root), description->config.vocab_size,
                    &description->eos_ids);
}

}  // namespace strata
