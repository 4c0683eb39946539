#include "tests/core/model/random_model.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "base/check.h"
#include "core/model/hf_config.h"
#include "core/model/layer_tensors.h"
#include "tests/core/model/file_bytes.h"

namespace strata {
namespace {

class RandomTensors {
 public:
  explicit RandomTensors(uint64_t seed) : random_(seed) {}

  void AddMatrix(const std::string& name, int64_t rows, int64_t cols) {
    Add(name, {rows, cols}, 0.0f, 1.0f / std::sqrt(static_cast<float>(cols)));
  }
  void AddNorm(const std::string& name, int64_t size) {
    Add(name, {size}, 1.0f, 0.3f);
  }
  void AddBias(const std::string& name, int64_t size) {
    Add(name, {size}, 0.0f, 0.5f);
  }
  std::string File() const { return Safetensors(header_.dump(), data_); }

 private:
  void Add(const std::string& name, const std::vector<int64_t>& shape,
           float mean, float deviation) {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    std::normal_distribution<float> normal(mean, deviation);
    const size_t begin = data_.size();
    for (int64_t i = 0; i < count; ++i) data_ += Bytes(normal(random_));
    header_[name] = {{"dtype", "F32"},
                     {"shape", shape},
                     {"data_offsets", {begin, data_.size()}}};
  }

  std::mt19937_64 random_;
  nlohmann::json header_;
  std::string data_;
};

}  // namespace

void WriteRandomModel(const std::string& config_json, uint64_t seed,
                      const std::string& directory) {
  const auto description = ParseHfConfig("config.json", config_json);
  STRATA_CHECK(description.ok() && !description->config.tied_embeddings);
  const ModelConfig& config = description->config;
  RandomTensors tensors(seed);
  tensors.AddMatrix("model.embed_tokens.weight", config.vocab_size,
                    config.hidden_size);
  tensors.AddMatrix("lm_head.weight", config.vocab_size, config.hidden_size);
  tensors.AddNorm("model.norm.weight", config.hidden_size);
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    for (const LayerMatrix& entry : kLayerMatrices) {
      tensors.AddMatrix(prefix + entry.hugging_face,
                        DimSize(entry.rows, config),
                        DimSize(entry.cols, config));
    }
    for (const LayerVector& entry : kLayerVectors) {
      if (entry.presence != nullptr && !((*description).*entry.presence)) {
        continue;
      }
      const std::string name = prefix + entry.hugging_face;
      const int64_t size = DimSize(entry.size, config);
      if (name.ends_with(".bias")) {
        tensors.AddBias(name, size);
      } else {
        tensors.AddNorm(name, size);
      }
    }
  }
  std::ofstream(directory + "/config.json") << config_json;
  std::ofstream(directory + "/model.safetensors", std::ios::binary)
      << tensors.File();
}

}  // namespace strata
