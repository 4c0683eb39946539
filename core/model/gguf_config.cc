#include "core/model/gguf_config.h"

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "core/model/file_error.h"
#include "core/model/rope.h"

namespace strata {
namespace {

constexpr double kDefaultTheta = 10000.0;

absl::Status CheckFile(const GgufMetadata& metadata,
                       std::string_view architecture) {
  STRATA_ASSIGN_OR_RETURN(const std::string_view type,
                          metadata.StringOr("general.type", "model"));
  if (type != "model") {
    return Unsupported(metadata.path(), "general.type ", Quote(type),
                       " is not a model");
  }
  STRATA_ASSIGN_OR_RETURN(const int num_files,
                          metadata.IntegerOr("split.count", 1));
  if (num_files > 1) {
    return Unsupported(metadata.path(), "is one of ", num_files,
                       " parts (split.count); only whole files are supported");
  }
  if (architecture.empty())
    return Malformed(metadata.path(), "general.architecture is missing");
  if (architecture != "llama" && architecture != "qwen2" &&
      architecture != "qwen3") {
    return Unsupported(metadata.path(), "general.architecture ",
                       Quote(architecture),
                       " is not supported; llama, qwen2 and qwen3 are");
  }
  return absl::OkStatus();
}

// Reads keys "ARCHITECTURE.NAME".
class ConfigReader {
 public:
  ConfigReader(const Gguf& gguf, std::string architecture)
      : gguf_(gguf),
        metadata_(gguf.metadata),
        prefix_(std::move(architecture) + ".") {}

  absl::Status ReadDimensions(ModelConfig* config) const;
  absl::Status CheckFeatures(const ModelConfig& config) const;
  absl::StatusOr<std::vector<float>> ReadRope(int head_dim) const;

 private:
  std::string Key(std::string_view name) const { return Concat(prefix_, name); }
  absl::StatusOr<int> ReadVocab() const;
  absl::Status ApplyRopeFactors(std::vector<float>* inv_freq) const;

  const Gguf& gguf_;
  const GgufMetadata& metadata_;
  const std::string prefix_;
};

absl::StatusOr<int> ConfigReader::ReadVocab() const {
  const auto embedding = gguf_.tensors.find("token_embd.weight");
  if (embedding == gguf_.tensors.end() || embedding->second.shape.size() != 2) {
    return Malformed(metadata_.path(),
                     "the matrix token_embd.weight is missing");
  }
  const int64_t rows = embedding->second.shape[0];
  if (rows > INT32_MAX)
    return Malformed(metadata_.path(), "token_embd.weight has ", rows, " rows");
  return metadata_.IntegerOr(Key("vocab_size"), static_cast<int>(rows));
}

absl::Status ConfigReader::ReadDimensions(ModelConfig* config) const {
  STRATA_ASSIGN_OR_RETURN(config->num_layers,
                          metadata_.Integer(Key("block_count")));
  STRATA_ASSIGN_OR_RETURN(config->hidden_size,
                          metadata_.Integer(Key("embedding_length")));
  STRATA_ASSIGN_OR_RETURN(config->intermediate_size,
                          metadata_.Integer(Key("feed_forward_length")));
  STRATA_ASSIGN_OR_RETURN(config->num_heads,
                          metadata_.Integer(Key("attention.head_count")));
  STRATA_ASSIGN_OR_RETURN(
      config->num_kv_heads,
      metadata_.IntegerOr(Key("attention.head_count_kv"), config->num_heads));
  STRATA_ASSIGN_OR_RETURN(config->max_positions,
                          metadata_.Integer(Key("context_length")));
  STRATA_ASSIGN_OR_RETURN(
      const double eps,
      metadata_.Number(Key("attention.layer_norm_rms_epsilon")));
  config->rms_norm_eps = static_cast<float>(eps);
  STRATA_ASSIGN_OR_RETURN(config->vocab_size, ReadVocab());
  config->tied_embeddings = !gguf_.tensors.contains("output.weight");
  if (metadata_.Has(Key("attention.key_length"))) {
    STRATA_ASSIGN_OR_RETURN(config->head_dim,
                            metadata_.Integer(Key("attention.key_length")));
  } else if (config->num_heads > 0 &&
             config->hidden_size % config->num_heads == 0) {
    config->head_dim = config->hidden_size / config->num_heads;
  } else {
    return Malformed(metadata_.path(), Key("embedding_length"), " ",
                     config->hidden_size, " is not a multiple of ",
                     Key("attention.head_count"), " ", config->num_heads);
  }
  return absl::OkStatus();
}

absl::Status ConfigReader::CheckFeatures(const ModelConfig& config) const {
  for (const char* name : {"attention.value_length", "rope.dimension_count"}) {
    STRATA_ASSIGN_OR_RETURN(const int value,
                            metadata_.IntegerOr(Key(name), config.head_dim));
    if (value == config.head_dim) continue;
    return Unsupported(metadata_.path(), Key(name), " ", value,
                       " other than the head dimension ", config.head_dim,
                       " is not supported");
  }
  STRATA_ASSIGN_OR_RETURN(
      const int window,
      metadata_.IntegerOr(Key("attention.sliding_window"), 0));
  if (window > 0 && window < config.max_positions) {
    return Unsupported(metadata_.path(), Key("attention.sliding_window"), " ",
                       window, " below the context ", config.max_positions,
                       " is not supported");
  }
  STRATA_ASSIGN_OR_RETURN(const int num_experts,
                          metadata_.IntegerOr(Key("expert_count"), 0));
  if (num_experts > 0) {
    return Unsupported(metadata_.path(), Key("expert_count"), " ", num_experts,
                       ": mixtures of experts are not supported");
  }
  STRATA_ASSIGN_OR_RETURN(const bool is_causal,
                          metadata_.BoolOr(Key("attention.causal"), true));
  if (!is_causal) {
    return Unsupported(metadata_.path(), Key("attention.causal"),
                       " false is not supported");
  }
  return absl::OkStatus();
}

// rope_freqs.weight holds what each frequency is divided by (llama.cpp's form
// of llama3 scaling).
absl::Status ConfigReader::ApplyRopeFactors(
    std::vector<float>* inv_freq) const {
  const auto it = gguf_.tensors.find("rope_freqs.weight");
  if (it == gguf_.tensors.end()) return absl::OkStatus();
  const StoredTensor& factors = it->second;
  if (factors.type != DType::kF32 ||
      factors.bytes.size() != inv_freq->size() * sizeof(float)) {
    return Malformed(metadata_.path(), "rope_freqs.weight is ",
                     factors.type_name, " ", ShapeText(factors.shape),
                     ", expected F32 [", inv_freq->size(), "]");
  }
  for (size_t i = 0; i < inv_freq->size(); ++i) {
    float factor;
    std::memcpy(&factor, factors.bytes.data() + i * sizeof(float),
                sizeof(factor));
    if (!(factor > 0.0f) || !std::isfinite(factor)) {
      return Malformed(metadata_.path(), "rope_freqs.weight[", i, "] is ",
                       factor, ", expected a positive number");
    }
    (*inv_freq)[i] /= factor;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> ConfigReader::ReadRope(int head_dim) const {
  STRATA_ASSIGN_OR_RETURN(
      const double theta,
      metadata_.NumberOr(Key("rope.freq_base"), kDefaultTheta));
  if (!(theta > 0.0) || !std::isfinite(static_cast<float>(theta))) {
    return Malformed(metadata_.path(), Key("rope.freq_base"), " is ", theta,
                     ", expected a positive number");
  }
  std::vector<float> inv_freq =
      RopeInvFreq(static_cast<float>(theta), head_dim);

  STRATA_ASSIGN_OR_RETURN(const double old_factor,
                          metadata_.NumberOr(Key("rope.scale_linear"), 1.0));
  STRATA_ASSIGN_OR_RETURN(
      const double factor,
      metadata_.NumberOr(Key("rope.scaling.factor"), old_factor));
  STRATA_ASSIGN_OR_RETURN(
      const std::string_view type,
      metadata_.StringOr(Key("rope.scaling.type"), "linear"));
  if (type == "linear") {
    if (!(factor > 0.0) || !std::isfinite(static_cast<float>(factor))) {
      return Malformed(metadata_.path(), Key("rope.scaling.factor"), " is ",
                       factor, ", expected a positive number");
    }
    inv_freq = ScaleLinear(factor, std::move(inv_freq));
  } else if (type != "none") {
    return Unsupported(metadata_.path(), Key("rope.scaling.type"), " ",
                       Quote(type), " is not supported; none and linear are");
  }
  STRATA_RETURN_IF_ERROR(ApplyRopeFactors(&inv_freq));
  return inv_freq;
}

}  // namespace

absl::StatusOr<ModelDescription> ParseGgufConfig(const Gguf& gguf) {
  const GgufMetadata& metadata = gguf.metadata;
  STRATA_ASSIGN_OR_RETURN(const std::string_view architecture,
                          metadata.StringOr("general.architecture", ""));
  STRATA_RETURN_IF_ERROR(CheckFile(metadata, architecture));
  const ConfigReader reader(gguf, std::string(architecture));
  ModelDescription description;
  ModelConfig& config = description.config;
  config.architecture = std::string(architecture);
  STRATA_RETURN_IF_ERROR(reader.ReadDimensions(&config));
  // Before anything is sized by the numbers.
  STRATA_RETURN_IF_ERROR(InFile(metadata.path(), config.ValidateDimensions()));
  STRATA_RETURN_IF_ERROR(reader.CheckFeatures(config));
  STRATA_ASSIGN_OR_RETURN(config.rope_inv_freq,
                          reader.ReadRope(config.head_dim));
  STRATA_RETURN_IF_ERROR(InFile(metadata.path(), config.Validate()));
  description.has_qkv_bias =
      architecture == "qwen2" || gguf.tensors.contains("blk.0.attn_q.bias");
  description.has_output_bias = gguf.tensors.contains("blk.0.attn_output.bias");
  description.has_qk_norm = architecture == "qwen3";
  return description;
}

}  // namespace strata
