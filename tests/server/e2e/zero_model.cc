#include "tests/server/e2e/zero_model.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace strata {
namespace {

// Collects tensors one behind the other.
class SafetensorsHeader {
 public:
  void Add(const std::string& name, std::vector<int64_t> shape) {
    int64_t size = 2;  // bytes of a BF16
    for (const int64_t n : shape) size *= n;
    header_[name] = {{"dtype", "BF16"},
                     {"shape", shape},
                     {"data_offsets", {end_, end_ + size}}};
    end_ += size;
  }
  void Write(const std::string& path) const {
    const std::string text = header_.dump();
    const uint64_t size = text.size();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(&size), sizeof(size))
        .write(text.data(), text.size());
    STRATA_CHECK(truncate(path.c_str(), 8 + size + end_) == 0);
  }

 private:
  nlohmann::json header_;
  int64_t end_ = 0;
};

}  // namespace

std::string ZeroModel::Write(const std::string& name) const {
  constexpr int kHeadDim = 64;
  const int num_heads = hidden / kHeadDim;
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  mkdir(directory.c_str(), 0700);
  const nlohmann::json config = {{"architectures", {"LlamaForCausalLM"}},
                                 {"model_type", "llama"},
                                 {"hidden_size", hidden},
                                 {"intermediate_size", intermediate},
                                 {"num_hidden_layers", layers},
                                 {"num_attention_heads", num_heads},
                                 {"num_key_value_heads", num_heads},
                                 {"head_dim", kHeadDim},
                                 {"vocab_size", vocab},
                                 {"max_position_embeddings", max_positions},
                                 {"rms_norm_eps", 1e-5},
                                 {"rope_theta", 10000.0},
                                 {"hidden_act", "silu"},
                                 {"tie_word_embeddings", true},
                                 {"torch_dtype", "bfloat16"}};
  std::ofstream(directory + "/config.json") << config;

  SafetensorsHeader header;
  header.Add("model.embed_tokens.weight", {vocab, hidden});
  header.Add("model.norm.weight", {hidden});
  for (int i = 0; i < layers; ++i) {
    const std::string layer = absl::StrCat("model.layers.", i, ".");
    header.Add(layer + "input_layernorm.weight", {hidden});
    header.Add(layer + "post_attention_layernorm.weight", {hidden});
    for (const char* projection : {"q", "k", "v", "o"}) {
      header.Add(absl::StrCat(layer, "self_attn.", projection, "_proj.weight"),
                 {hidden, hidden});
    }
    header.Add(layer + "mlp.gate_proj.weight", {intermediate, hidden});
    header.Add(layer + "mlp.up_proj.weight", {intermediate, hidden});
    header.Add(layer + "mlp.down_proj.weight", {hidden, intermediate});
  }
  header.Write(directory + "/model.safetensors");
  return directory;
}

}  // namespace strata
