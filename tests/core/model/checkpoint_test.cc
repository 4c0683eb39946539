#include "core/model/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/core/model/temp_files.h"
#include "tests/core/model/tiny_model.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Golden(const std::string& name) { return "tests/golden/" + name; }

TEST(CheckpointTest, LoadsEveryGoldenModel) {
  struct Want {
    const char* name;
    const char* architecture;
    int layers, hidden, intermediate, heads, kv_heads, head_dim, vocab,
        positions;
    bool is_tied;
  };
  for (const Want& want : {
           Want{"llama-tied", "llama", 8, 64, 160, 4, 2, 16, 384, 256, true},
           Want{"llama3-ropescaled", "llama", 4, 128, 96, 2, 2, 64, 260, 512,
                false},
           Want{"mistral", "mistral", 7, 80, 144, 5, 5, 16, 300, 256, false},
           Want{"qwen2-bias", "qwen2", 5, 96, 128, 6, 2, 16, 320, 256, false},
           Want{"qwen3-qknorm", "qwen3", 6, 64, 192, 4, 1, 32, 320, 256, false},
       }) {
    SCOPED_TRACE(want.name);
    auto checkpoint = LoadCheckpoint(Golden(want.name));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const ModelConfig& config = checkpoint->config;
    EXPECT_EQ(config.architecture, want.architecture);
    EXPECT_EQ(config.num_layers, want.layers);
    EXPECT_EQ(config.hidden_size, want.hidden);
    EXPECT_EQ(config.intermediate_size, want.intermediate);
    EXPECT_EQ(config.num_heads, want.heads);
    EXPECT_EQ(config.num_kv_heads, want.kv_heads);
    EXPECT_EQ(config.head_dim, want.head_dim);
    EXPECT_EQ(config.vocab_size, want.vocab);
    EXPECT_EQ(config.max_positions, want.positions);
    EXPECT_EQ(config.tied_embeddings, want.is_tied);
    EXPECT_EQ(config.rms_norm_eps, 1e-6f);
    EXPECT_EQ(checkpoint->head.data == checkpoint->embedding.data,
              want.is_tied);
    EXPECT_EQ(checkpoint->weight_format, "BF16");
    EXPECT_EQ(checkpoint->eos_ids, std::vector<int32_t>{1});
    EXPECT_FALSE(checkpoint->tokenizer.has_value());
    ASSERT_EQ(checkpoint->layers.size(), static_cast<size_t>(want.layers));
    for (const LayerWeights& layer : checkpoint->layers) {
      const bool is_qwen2 = config.architecture == "qwen2";
      EXPECT_EQ(layer.bq.data != nullptr, is_qwen2);
      EXPECT_EQ(layer.bk.data != nullptr, is_qwen2);
      EXPECT_EQ(layer.bv.data != nullptr, is_qwen2);
      EXPECT_EQ(layer.bo.data, nullptr);
      EXPECT_EQ(layer.q_norm.data != nullptr, config.architecture == "qwen3");
      EXPECT_EQ(layer.k_norm.data != nullptr, config.architecture == "qwen3");
      EXPECT_EQ(layer.wo.cols, want.heads * want.head_dim);
      EXPECT_EQ(layer.wk.rows, want.kv_heads * want.head_dim);
      EXPECT_EQ(layer.down.cols, want.intermediate);
      EXPECT_EQ(layer.wq.interleaved_head_dim, 0);
    }
  }
}

class TinyCheckpointTest : public ::testing::Test {
 protected:
  absl::StatusOr<Checkpoint> LoadDirectory(const TinyModel& model) {
    directory_.Write("config.json", model.ConfigJson());
    directory_.Write("model.safetensors", model.SafetensorsFile());
    return LoadCheckpoint(directory_.path());
  }
  absl::StatusOr<Checkpoint> LoadGguf(const TinyModel& model) {
    return LoadCheckpoint(directory_.Write("m.gguf", model.GgufFile()));
  }
  TempDirectory directory_;
};

TEST_F(TinyCheckpointTest, LoadsEveryArchitecture) {
  for (const char* type : {"llama", "mistral", "qwen2", "qwen3"}) {
    auto checkpoint = LoadDirectory(TinyModel::HuggingFace(type));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ(checkpoint->weight_format, "F32");
    EXPECT_EQ(checkpoint->files.size(), 1u);
  }
  for (const char* type : {"llama", "qwen2", "qwen3"}) {
    auto checkpoint = LoadGguf(TinyModel::Gguf(type));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const bool is_llama = checkpoint->config.architecture == "llama";
    EXPECT_EQ(checkpoint->layers[1].wq.interleaved_head_dim, is_llama ? 6 : 0);
    EXPECT_EQ(checkpoint->layers[1].wk.interleaved_head_dim, is_llama ? 6 : 0);
    EXPECT_EQ(checkpoint->layers[1].wv.interleaved_head_dim, 0);
  }
}

TEST_F(TinyCheckpointTest, CountsBytesAndNamesTheFormatOfMost) {
  TinyModel model = TinyModel::Gguf("llama");
  int64_t bytes = 0;
  for (auto& [name, tensor] : model.tensors) {
    const bool is_f16 =
        name.find("ffn_") != std::string::npos && tensor.shape.size() == 2;
    if (is_f16 || name == "output.weight")
      tensor.type = is_f16 ? "F16" : "BF16";
    int64_t elements = 1;
    for (const int64_t dim : tensor.shape) elements *= dim;
    bytes += elements * (tensor.type == "F32" ? 4 : 2);
  }
  model.tensors["unused.weight"] = {.type = "Q4_K", .shape = {2, 256}};
  auto checkpoint = LoadGguf(model);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->weight_bytes, bytes);
  EXPECT_EQ(checkpoint->weight_format, "F32");
  EXPECT_EQ(checkpoint->head.type, DType::kBF16);
  EXPECT_EQ(checkpoint->layers[0].down.type, DType::kF16);
  EXPECT_EQ(checkpoint->layers[0].down.rows, 8);
  EXPECT_EQ(checkpoint->layers[0].down.cols, 12);
}

TEST_F(TinyCheckpointTest, TiedModelsIgnoreTheHead) {
  TinyModel directory = TinyModel::HuggingFace("llama");
  directory.config_changes = R"({"tie_word_embeddings":true})";
  auto tied = LoadDirectory(directory);
  ASSERT_TRUE(tied.ok()) << tied.status();
  EXPECT_EQ(tied->head.data, tied->embedding.data);
  directory.tensors.erase("lm_head.weight");
  EXPECT_TRUE(LoadDirectory(directory).ok());

  TinyModel gguf = TinyModel::Gguf("llama");
  EXPECT_FALSE(LoadGguf(gguf)->config.tied_embeddings);
  gguf.tensors.erase("output.weight");
  auto tied_gguf = LoadGguf(gguf);
  ASSERT_TRUE(tied_gguf.ok()) << tied_gguf.status();
  EXPECT_TRUE(tied_gguf->config.tied_embeddings);
  EXPECT_EQ(tied_gguf->head.data, tied_gguf->embedding.data);
}

TEST_F(TinyCheckpointTest, LoadsBiasesOfLlama) {
  TinyModel directory = TinyModel::HuggingFace("llama");
  directory.config_changes = R"({"attention_bias":true})";
  TinyModel gguf = TinyModel::Gguf("llama");
  for (const char* layer : {"0.", "1."}) {
    const std::string hf = std::string("model.layers.") + layer + "self_attn.";
    const std::string blk = std::string("blk.") + layer;
    directory.tensors[hf + "q_proj.bias"] =
        gguf.tensors[blk + "attn_q.bias"] = {.shape = {24}};
    directory.tensors[hf + "k_proj.bias"] =
        gguf.tensors[blk + "attn_k.bias"] = {.shape = {12}};
    directory.tensors[hf + "v_proj.bias"] =
        gguf.tensors[blk + "attn_v.bias"] = {.shape = {12}};
    directory.tensors[hf + "o_proj.bias"] =
        gguf.tensors[blk + "attn_output.bias"] = {.shape = {8}};
  }
  auto from_directory = LoadDirectory(directory);
  ASSERT_TRUE(from_directory.ok()) << from_directory.status();
  EXPECT_EQ(from_directory->layers[1].bq.cols, 24);
  EXPECT_EQ(from_directory->layers[1].bo.cols, 8);
  auto from_gguf = LoadGguf(gguf);
  ASSERT_TRUE(from_gguf.ok()) << from_gguf.status();
  // A column, so that StoredRow reorders it.
  EXPECT_EQ(from_gguf->layers[1].bq.rows, 24);
  EXPECT_EQ(from_gguf->layers[1].bq.cols, 1);
  EXPECT_EQ(from_gguf->layers[1].bk.interleaved_head_dim, 6);
  EXPECT_EQ(from_gguf->layers[1].bv.cols, 12);
  EXPECT_EQ(from_gguf->layers[1].bo.cols, 8);
}

using Change = std::function<void(TinyModel*)>;

Change Reshape(const std::string& name, std::vector<int64_t> shape) {
  return [=](TinyModel* m) { m->tensors.at(name).shape = shape; };
}
Change Erase(const std::string& name) {
  return [=](TinyModel* m) { m->tensors.erase(name); };
}
Change Set(const std::string& name, const std::string& type,
           std::vector<int64_t> shape) {
  return
      [=](TinyModel* m) { m->tensors[name] = {.type = type, .shape = shape}; };
}

struct Refusal {
  const char* type;
  Change change;
  const char* message;
};

TEST_F(TinyCheckpointTest, RefusesDirectories) {
  const std::string layer = "model.layers.1.";
  for (const Refusal& c : {
           Refusal{"llama", Reshape(layer + "self_attn.k_proj.weight", {24, 8}),
                   "/model.safetensors: model.layers.1.self_attn.k_proj.weight "
                   "is [24, 8], expected "
                   "[12, 8]"},
           Refusal{"llama", Reshape(layer + "self_attn.q_proj.weight", {8, 24}),
                   "expected [24, 8]"},
           Refusal{"llama", Reshape(layer + "self_attn.v_proj.weight", {96}),
                   "expected [12, 8]"},
           Refusal{"llama", Reshape(layer + "self_attn.o_proj.weight", {24, 8}),
                   "expected [8, 24]"},
           Refusal{"llama", Reshape(layer + "mlp.gate_proj.weight", {12, 9}),
                   "expected [12, 8]"},
           Refusal{"llama", Reshape(layer + "mlp.up_proj.weight", {13, 8}),
                   "expected [12, 8]"},
           Refusal{"llama", Reshape(layer + "mlp.down_proj.weight", {8, 12, 1}),
                   "expected [8, 12]"},
           Refusal{"llama", Reshape(layer + "input_layernorm.weight", {7}),
                   "expected [8]"},
           Refusal{"llama",
                   Reshape(layer + "post_attention_layernorm.weight", {1, 8}),
                   "expected [8]"},
           Refusal{"llama", Reshape("model.norm.weight", {}),
                   "model.norm.weight is [], expected [8]"},
           Refusal{"llama", Reshape("model.embed_tokens.weight", {6, 8}),
                   "expected [5, 8]"},
           Refusal{"llama", Reshape("lm_head.weight", {6, 8}),
                   "expected [5, 8]"},
           Refusal{"qwen2", Reshape(layer + "self_attn.q_proj.bias", {12}),
                   "expected [24]"},
           Refusal{"qwen3", Reshape(layer + "self_attn.k_norm.weight", {12}),
                   "expected [6]"},
           Refusal{"llama", Erase("lm_head.weight"),
                   "tensor lm_head.weight is missing"},
           Refusal{"llama", Erase("model.norm.weight"),
                   "tensor model.norm.weight is missing"},
           Refusal{"llama", Erase(layer + "mlp.up_proj.weight"),
                   "tensor model.layers.1.mlp.up_proj.weight is missing"},
           Refusal{"qwen2", Erase(layer + "self_attn.v_proj.bias"),
                   "v_proj.bias is missing"},
           Refusal{"qwen3", Erase(layer + "self_attn.q_norm.weight"),
                   "q_norm.weight is missing"},
           Refusal{"llama",
                   [](TinyModel* m) {
                     m->config_changes = R"({"attention_bias":true})";
                   },
                   "self_attn.q_proj.bias is missing"},
           Refusal{"llama",
                   [](TinyModel* m) {
                     m->config_changes = R"({"num_hidden_layers":3})";
                   },
                   "tensor model.layers.2."},
           Refusal{"llama", Set(layer + "mlp.up_proj.weight", "F64", {12, 8}),
                   "up_proj.weight is F64, which is not supported; F32,"},
           Refusal{"llama", Set(layer + "self_attn.q_proj.bias", "F32", {24}),
                   "q_proj.bias\" is not supported in a model of type llama"},
           Refusal{"llama", Set(layer + "self_attn.q_norm.weight", "F32", {6}),
                   "q_norm.weight\" is not supported in a model of type llama"},
           Refusal{"qwen2", Set(layer + "mlp.up_proj.bias", "F32", {12}),
                   "is not supported"},
       }) {
    TinyModel model = TinyModel::HuggingFace(c.type);
    c.change(&model);
    const std::string message(LoadDirectory(model).status().message());
    EXPECT_THAT(message,
                StartsWith(directory_.path() + "/model.safetensors: "));
    EXPECT_THAT(message, HasSubstr(c.message));
  }
}

TEST_F(TinyCheckpointTest, RefusesGgufFiles) {
  for (const Refusal& c : {
           Refusal{"llama", Reshape("blk.1.attn_k.weight", {24, 8}),
                   "m.gguf: blk.1.attn_k.weight is [24, 8], expected [12, 8]"},
           Refusal{"llama", Reshape("output.weight", {4, 8}),
                   "expected [5, 8]"},
           Refusal{"llama", Erase("blk.0.ffn_norm.weight"),
                   "blk.0.ffn_norm.weight is missing"},
           Refusal{"llama", Set("blk.0.ffn_gate.weight", "Q4_K", {12, 256}),
                   "expected [12, 8]"},
           Refusal{"llama", Set("blk.0.ffn_gate.bias", "F32", {12}),
                   "ffn_gate.bias\" is not supported"},
           Refusal{"llama", Set("blk.1.attn_q.bias", "F32", {24}),
                   "attn_q.bias\" is not supported"},
           Refusal{"qwen3", Erase("blk.1.attn_q_norm.weight"),
                   "attn_q_norm.weight is missing"},
           Refusal{"llama",
                   [](TinyModel* m) { m->metadata.U32("llama.vocab_size", 6); },
                   "token_embd.weight is [5, 8], expected [6, 8]"},
       }) {
    TinyModel model = TinyModel::Gguf(c.type);
    c.change(&model);
    const std::string message(LoadGguf(model).status().message());
    EXPECT_THAT(message, StartsWith(directory_.path() + "/m.gguf: "));
    EXPECT_THAT(message, HasSubstr(c.message));
  }
}

TEST_F(TinyCheckpointTest, RefusesUnsupportedQuantisationByName) {
  TinyModel model = TinyModel::Gguf("llama");
  for (auto& [name, tensor] : model.tensors) {
    for (int64_t& dim : tensor.shape) {
      if (dim == 8) dim = 256;
    }
  }
  // The tiny configuration says 8; only the refused types matter here.
  GgufBuilder metadata;
  metadata.String("general.architecture", "llama")
      .U32("llama.block_count", 2)
      .U32("llama.context_length", 64)
      .U32("llama.embedding_length", 256)
      .U32("llama.feed_forward_length", 12)
      .U32("llama.attention.head_count", 4)
      .U32("llama.attention.head_count_kv", 2)
      .U32("llama.attention.key_length", 6)
      .F32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  model.metadata = metadata;
  ASSERT_TRUE(LoadGguf(model).ok()) << LoadGguf(model).status();
  TinyModel k_quants = model;
  k_quants.tensors["blk.0.ffn_up.weight"].type = "Q4_K";
  const absl::Status status = LoadGguf(k_quants).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("blk.0.ffn_up.weight is Q4_K, which is not supported; F32,"));
  TinyModel norm = model;
  norm.tensors["blk.0.attn_norm.weight"].type = "Q8_0";
  EXPECT_THAT(std::string(LoadGguf(norm).status().message()),
              HasSubstr("attn_norm.weight is Q8_0; norms and biases must be"));
}

TEST_F(TinyCheckpointTest, ReadsTheSidecarsOfADirectory) {
  directory_.Write("generation_config.json", R"({"eos_token_id":[4,2]})");
  auto checkpoint = LoadDirectory(TinyModel::HuggingFace("llama"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(checkpoint->eos_ids, ElementsAre(4, 2));
  directory_.Write("generation_config.json", "{");
  EXPECT_EQ(LoadCheckpoint(directory_.path()).status().message(),
            directory_.Path("generation_config.json") + ": is not valid JSON");
  directory_.Write("generation_config.json", "{}");
  directory_.Write("tokenizer.json", "{");
  EXPECT_THAT(std::string(LoadCheckpoint(directory_.path()).status().message()),
              StartsWith(directory_.Path("tokenizer.json") + ": "));
}

TEST_F(TinyCheckpointTest, NamesWhatIsNotThere) {
  const absl::Status absent =
      LoadCheckpoint(directory_.Path("absent")).status();
  EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(absent.message()),
              StartsWith(directory_.Path("absent") + ": "));
  const absl::Status empty = LoadCheckpoint(directory_.path()).status();
  EXPECT_EQ(empty.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(empty.message()),
              StartsWith(directory_.Path("config.json") + ": "));
  directory_.Write("config.json", TinyModel::HuggingFace("llama").ConfigJson());
  EXPECT_THAT(std::string(LoadCheckpoint(directory_.path()).status().message()),
              HasSubstr("has neither model.safetensors nor"));
  EXPECT_THAT(
      std::string(
          LoadCheckpoint(directory_.Path("config.json")).status().message()),
      HasSubstr("config.json: is not a GGUF file"));
}

}  // namespace
}  // namespace strata
