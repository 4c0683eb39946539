#include "planner/planned_model.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "core/model/hf_config.h"
#include "core/model/mapped_file.h"

namespace strata {
namespace {

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// A directory of which config.json alone is there.
bool HasNoWeights(const std::string& path) {
  return IsDirectory(path) && Exists(path + "/config.json") &&
         !Exists(path + "/model.safetensors") &&
         !Exists(path + "/model.safetensors.index.json");
}

// The last part of a path, without .gguf.
std::string NameOf(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  std::string name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  return name;
}

LayerWeights LayerOfShape(const ModelDescription& description, DType type) {
  const ModelConfig& c = description.config;
  const int64_t q = int64_t{c.num_heads} * c.head_dim;
  const int64_t kv = int64_t{c.num_kv_heads} * c.head_dim;
  const auto matrix = [&](int64_t rows, int64_t cols) {
    return WeightView{.type = type, .rows = rows, .cols = cols};
  };
  const DType vector_type = BlockElements(type) > 1 ? DType::kF32 : type;
  const auto vector = [&](int64_t size) {
    return WeightView{.type = vector_type, .rows = 1, .cols = size};
  };
  LayerWeights layer;
  layer.attention_norm = vector(c.hidden_size);
  layer.wq = matrix(q, c.hidden_size);
  layer.wk = matrix(kv, c.hidden_size);
  layer.wv = matrix(kv, c.hidden_size);
  layer.wo = matrix(c.hidden_size, q);
  if (description.has_qkv_bias) {
    layer.bq = vector(q);
    layer.bk = vector(kv);
    layer.bv = vector(kv);
  }
  if (description.has_output_bias) layer.bo = vector(c.hidden_size);
  if (description.has_qk_norm) layer.q_norm = vector(c.head_dim);
  if (description.has_qk_norm) layer.k_norm = vector(c.head_dim);
  layer.mlp_norm = vector(c.hidden_size);
  layer.gate = matrix(c.intermediate_size, c.hidden_size);
  layer.up = matrix(c.intermediate_size, c.hidden_size);
  layer.down = matrix(c.hidden_size, c.intermediate_size);
  return layer;
}

// `of` of all weights, each once.
template <class Of>
int64_t SumOfWeights(const Checkpoint& checkpoint, const Of& of) {
  int64_t sum = of(checkpoint.embedding) + of(checkpoint.final_norm);
  if (!checkpoint.config.tied_embeddings) sum += of(checkpoint.head);
  for (const LayerWeights& l : checkpoint.layers) {
    for (const WeightView* view :
         {&l.attention_norm, &l.wq, &l.wk, &l.wv, &l.wo, &l.bq, &l.bk, &l.bv,
          &l.bo, &l.q_norm, &l.k_norm, &l.mlp_norm, &l.gate, &l.up, &l.down}) {
      sum += of(*view);
    }
  }
  return sum;
}

}  // namespace

absl::StatusOr<PlannedModel> ReadModel(const std::string& path,
                                       std::optional<DType> weight_type) {
  if (HasNoWeights(path)) {
    STRATA_ASSIGN_OR_RETURN(const auto config,
                            MappedFile::Open(path + "/config.json"));
    STRATA_ASSIGN_OR_RETURN(const ModelDescription description,
                            ParseHfConfig(config->path(), config->text()));
    return ModelOfShape(NameOf(path), description,
                        weight_type.value_or(DType::kBF16));
  }
  PlannedModel model;
  STRATA_ASSIGN_OR_RETURN(model.checkpoint, LoadCheckpoint(path));
  if (weight_type.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--weight_type is for models without weights; those of ",
                     path, " are ", model.checkpoint.weight_format));
  }
  model.name = NameOf(path);
  model.has_files = true;
  return model;
}

absl::StatusOr<PlannedModel> ModelOfShape(const std::string& name,
                                          const ModelDescription& description,
                                          DType weight_type) {
  const ModelConfig& config = description.config;
  const int block = BlockElements(weight_type);
  for (const int64_t cols :
       {int64_t{config.hidden_size}, int64_t{config.intermediate_size},
        int64_t{config.num_heads} * config.head_dim}) {
    if (cols % block == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--weight_type: rows of ", cols, " elements are no whole blocks of ",
        block, ", as ", DTypeName(weight_type), " needs"));
  }
  PlannedModel model;
  model.name = name;
  Checkpoint& checkpoint = model.checkpoint;
  checkpoint.config = config;
  checkpoint.layers.assign(config.num_layers,
                           LayerOfShape(description, weight_type));
  checkpoint.embedding = {.type = weight_type,
                          .rows = config.vocab_size,
                          .cols = config.hidden_size};
  checkpoint.head = checkpoint.embedding;
  checkpoint.final_norm = checkpoint.layers[0].mlp_norm;
  checkpoint.weight_format = DTypeName(weight_type);
  checkpoint.weight_bytes = SumOfWeights(
      checkpoint, [](const WeightView& view) { return view.NumBytes(); });
  return model;
}

int64_t NumParameters(const PlannedModel& model) {
  return SumOfWeights(model.checkpoint, [](const WeightView& view) {
    return view.rows * view.cols;
  });
}

}  // namespace strata
