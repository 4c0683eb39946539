#include "core/model/lora_adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/cpu/dequantize.h"
#include "tests/core/model/temp_files.h"
#include "tests/core/model/tiny_adapter.h"
#include "tests/core/model/tiny_model.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kLayer1[] = "model.layers.1.";

std::string Layer1(const std::string& name) { return kLayer1 + name; }

float First(const WeightView& view) {
  std::vector<float> row(view.cols);
  cpu::DequantizeRow(view, 0, row.data());
  return row[0];
}

// Adapters of the model of TinyModel: hidden 8, intermediate 12, 24 outputs of
// Q, 12 of K and V, heads of 6, vocabulary 5, two layers.
class LoraAdapterTest : public testing::Test {
 protected:
  LoraAdapterTest() {
    adapter_.AddPair(Layer1("self_attn.q_proj"), 24, 8, 3);
    adapter_.AddPair(Layer1("mlp.down_proj"), 8, 12, 3);
  }

  Checkpoint LoadHuggingFace(const TinyModel& model) {
    model_files_.Write("config.json", model.ConfigJson());
    model_files_.Write("model.safetensors", model.SafetensorsFile());
    return Loaded(model_files_.path());
  }
  Checkpoint LoadGguf(const TinyModel& model) {
    return Loaded(model_files_.Write("m.gguf", model.GgufFile()));
  }
  Checkpoint Loaded(const std::string& path) {
    auto checkpoint = LoadCheckpoint(path);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return *std::move(checkpoint);
  }

  absl::StatusOr<AdapterSummary> Apply(Checkpoint* checkpoint,
                                       bool exact = false) {
    adapter_.Write(adapter_files_);
    return ApplyLoraAdapter(adapter_files_.path(), exact, checkpoint);
  }

  // The error of the adapter as it is, for a llama model.
  absl::Status Refusal() {
    Checkpoint checkpoint = LoadHuggingFace(TinyModel::HuggingFace("llama"));
    return Apply(&checkpoint).status();
  }
  void ExpectRefused(const std::vector<std::string>& says) {
    const absl::Status status = Refusal();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const std::string message(status.message());
    EXPECT_THAT(message, StartsWith(adapter_files_.path()));
    EXPECT_THAT(message, testing::Not(HasSubstr("\n")));
    for (const std::string& part : says) EXPECT_THAT(message, HasSubstr(part));
  }

  TempDirectory model_files_, adapter_files_;
  TinyAdapter adapter_;
};

TEST_F(LoraAdapterTest, BindsPairsToMatrices) {
  adapter_.config["alpha_pattern"] = {{"down_proj", 1.5}};
  for (const bool is_gguf : {false, true}) {
    Checkpoint checkpoint =
        is_gguf ? LoadGguf(TinyModel::Gguf("llama"))
                : LoadHuggingFace(TinyModel::HuggingFace("llama"));
    const auto summary = Apply(&checkpoint);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary->rank, 3);
    EXPECT_EQ(summary->num_merged, 2);
    EXPECT_EQ(summary->num_replaced, 0);
    EXPECT_EQ(summary->kept_as, "F32");
    ASSERT_EQ(checkpoint.layer_updates.size(), 2u);
    const LowRankUpdate& wq = checkpoint.layer_updates[1].wq;
    EXPECT_EQ(wq.a.rows, 3);
    EXPECT_EQ(wq.a.cols, 8);
    EXPECT_EQ(wq.b.rows, 24);
    EXPECT_EQ(wq.b.cols, 3);
    EXPECT_EQ(wq.scale, 2.0f);
    EXPECT_EQ(wq.b.interleaved_head_dim, 0);
    EXPECT_EQ(First(wq.b), 0.125f);
    EXPECT_EQ(checkpoint.layer_updates[1].down.scale, 0.5f);
    EXPECT_EQ(checkpoint.layer_updates[1].down.a.cols, 12);
    EXPECT_FALSE(checkpoint.layer_updates[0].wq.is_present());
    EXPECT_FALSE(checkpoint.layer_updates[1].wk.is_present());
    EXPECT_FALSE(checkpoint.head_update.is_present());
  }
}

TEST_F(LoraAdapterTest, EveryLinearLayerAndTheHeadTakeUpdates) {
  adapter_.tensors.clear();
  for (int i = 0; i < 2; ++i) {
    const std::string p = "model.layers." + std::to_string(i) + ".";
    adapter_.AddPair(p + "self_attn.q_proj", 24, 8, 3);
    adapter_.AddPair(p + "self_attn.k_proj", 12, 8, 3, DType::kF16);
    adapter_.AddPair(p + "self_attn.v_proj", 12, 8, 3, DType::kBF16);
    adapter_.AddPair(p + "self_attn.o_proj", 8, 24, 3);
    adapter_.AddPair(p + "mlp.gate_proj", 12, 8, 3);
    adapter_.AddPair(p + "mlp.up_proj", 12, 8, 3);
    adapter_.AddPair(p + "mlp.down_proj", 8, 12, 3);
  }
  adapter_.AddPair("lm_head", 5, 8, 3);
  Checkpoint checkpoint = LoadHuggingFace(TinyModel::HuggingFace("qwen2"));
  const auto summary = Apply(&checkpoint);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->num_merged, 15);
  for (const LayerUpdates& of : checkpoint.layer_updates) {
    for (const LowRankUpdate* update :
         {&of.wq, &of.wk, &of.wv, &of.wo, &of.gate, &of.up, &of.down}) {
      EXPECT_TRUE(update->is_present());
      EXPECT_EQ(First(update->a), 0.125f);
    }
  }
  EXPECT_TRUE(checkpoint.head_update.is_present());
}

// PEFT would leave out what the config does not name.
TEST_F(LoraAdapterTest, UpdatesAreThoseThatTheConfigNames) {
  adapter_.config["target_modules"] = {"q_proj", "down_proj"};
  adapter_.config["layers_to_transform"] = {1};
  EXPECT_TRUE(Refusal().ok());
  adapter_.config["layers_to_transform"] = {0};
  ExpectRefused({"layers.1.mlp.down_proj.lora_A", "layers_to_transform"});
  adapter_.config["layers_to_transform"] = nullptr;
  adapter_.config["target_modules"] = {"q_proj"};
  ExpectRefused({"layers.1.mlp.down_proj.lora_A", "target_modules"});
}

TEST_F(LoraAdapterTest, UpdatesOfNoUseAreRefused) {
  adapter_.config["lora_alpha"] = 1e38;
  ExpectRefused({"lora_alpha / r = 3.33333e+37", "allowed are up to 1e+06"});
}

TEST_F(LoraAdapterTest, WholeTensorsReplaceThoseOfTheModel) {
  adapter_.config["modules_to_save"] = {"norm", "embed_tokens"};
  for (const char* norm :
       {"model.layers.0.input_layernorm", "model.layers.1.input_layernorm",
        "model.layers.0.post_attention_layernorm",
        "model.layers.1.post_attention_layernorm", "model.norm"}) {
    adapter_.Add(std::string(norm) + ".weight", {8});
  }
  for (const char* norm : {"q_norm", "k_norm"}) {
    for (const char* layer : {"0", "1"}) {
      adapter_.Add(std::string("model.layers.") + layer + ".self_attn." + norm +
                       ".weight",
                   {6}, DType::kF16);
    }
  }
  adapter_.Add("model.embed_tokens.weight", {5, 8}, DType::kBF16);
  // What PEFT calls a matrix that has an update too (save_embedding_layers).
  adapter_.Add("lm_head.base_layer.weight", {5, 8});
  adapter_.AddPair("lm_head", 5, 8, 3);
  for (const bool is_gguf : {false, true}) {
    Checkpoint checkpoint =
        is_gguf ? LoadGguf(TinyModel::Gguf("qwen3"))
                : LoadHuggingFace(TinyModel::HuggingFace("qwen3"));
    const auto summary = Apply(&checkpoint);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary->num_replaced, 11);
    EXPECT_EQ(summary->num_merged, 3);
    const LayerWeights& layer = checkpoint.layers[1];
    for (const WeightView& view :
         {layer.attention_norm, layer.mlp_norm, layer.q_norm, layer.k_norm,
          checkpoint.final_norm, checkpoint.embedding, checkpoint.head}) {
      EXPECT_EQ(First(view), 0.125f);
    }
    EXPECT_EQ(checkpoint.embedding.type, DType::kBF16);
    EXPECT_EQ(layer.q_norm.cols, 6);
    EXPECT_EQ(layer.wq.interleaved_head_dim, 0);
  }
}

// modules_to_save may name what holds linear layers: all of them are saved.
TEST_F(LoraAdapterTest, ABlockReplacesAllThatIsInIt) {
  adapter_.tensors.clear();
  adapter_.config["modules_to_save"] = {"layers.1.mlp"};
  adapter_.Add(Layer1("mlp.gate_proj.weight"), {12, 8});
  adapter_.Add(Layer1("mlp.up_proj.weight"), {12, 8});
  ExpectRefused({"lacks", Layer1("mlp.down_proj.weight"), "\"layers.1.mlp\""});
  adapter_.Add(Layer1("mlp.down_proj.weight"), {8, 12});
  EXPECT_TRUE(Refusal().ok());
}

TEST_F(LoraAdapterTest, NoUpdateOfWhatIsTrainedAsAWhole) {
  adapter_.config["modules_to_save"] = {"down_proj"};
  ExpectRefused({"layers.1.mlp.down_proj.lora_A", "modules_to_save"});
}

// In a GGUF file of the llama architecture both are in another order of rows.
TEST_F(LoraAdapterTest, WholeMatricesAndBiasesAreInTheModelsOrder) {
  TinyModel model = TinyModel::Gguf("llama");
  for (const char* layer : {"0", "1"}) {
    const std::string p = std::string("blk.") + layer + ".attn_";
    model.tensors[p + "q.bias"] = {.shape = {24}};
    model.tensors[p + "k.bias"] = {.shape = {12}};
    model.tensors[p + "v.bias"] = {.shape = {12}};
  }
  adapter_.tensors.clear();
  adapter_.config["modules_to_save"] = {"1.self_attn.q_proj"};
  adapter_.Add(Layer1("self_attn.q_proj.weight"), {24, 8});
  adapter_.Add(Layer1("self_attn.q_proj.bias"), {24});
  Checkpoint checkpoint = LoadGguf(model);
  const auto summary = Apply(&checkpoint);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const LayerWeights& layer = checkpoint.layers[1];
  EXPECT_EQ(layer.wq.interleaved_head_dim, 0);
  EXPECT_EQ(layer.bq.interleaved_head_dim, 0);
  EXPECT_EQ(layer.bq.rows * layer.bq.cols, 24);
  EXPECT_EQ(layer.wk.interleaved_head_dim, 6);
  EXPECT_EQ(checkpoint.layers[0].bq.interleaved_head_dim, 6);
}

TEST_F(LoraAdapterTest, MergedMatricesKeepTheirTypeButForFourBits) {
  // Rows of whole blocks: hidden 32, and the rest as it must be.
  const auto kept = [this](const std::string& type, bool exact) {
    TinyModel model = TinyModel::Gguf("llama");
    model.metadata = GgufBuilder()
                         .String("general.architecture", "llama")
                         .U32("llama.block_count", 2)
                         .U32("llama.context_length", 64)
                         .U32("llama.embedding_length", 32)
                         .U32("llama.feed_forward_length", 32)
                         .U32("llama.attention.head_count", 4)
                         .U32("llama.attention.head_count_kv", 2)
                         .U32("llama.attention.key_length", 8)
                         .F32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    for (auto& [name, tensor] : model.tensors) {
      const bool is_key_value =
          name.ends_with("attn_k.weight") || name.ends_with("attn_v.weight");
      for (int64_t& dim : tensor.shape) dim = dim == 5 ? 5 : 32;
      if (is_key_value) tensor.shape[0] = 16;
      if (tensor.shape.size() == 2) tensor.type = type;
    }
    adapter_.tensors.clear();
    adapter_.AddPair(Layer1("self_attn.q_proj"), 32, 32, 3);
    Checkpoint checkpoint = LoadGguf(model);
    const int64_t before = checkpoint.weight_bytes;
    const auto summary = Apply(&checkpoint, exact);
    EXPECT_TRUE(summary.ok()) << summary.status();
    const LowRankUpdate& update = checkpoint.layer_updates[1].wq;
    EXPECT_EQ(summary->kept_as, DTypeName(update.merged_type));
    WeightView merged = checkpoint.layers[1].wq;
    const int64_t base_bytes = merged.NumBytes();
    merged.type = update.merged_type;
    EXPECT_EQ(checkpoint.weight_bytes, before - base_bytes + merged.NumBytes());
    return summary->kept_as;
  };
  for (const char* type : {"F32", "F16", "BF16", "Q8_0"}) {
    EXPECT_EQ(kept(type, false), type);
    EXPECT_EQ(kept(type, true), "F32");
  }
  for (const char* type : {"Q4_0", "Q4_1"}) {
    EXPECT_EQ(kept(type, false), "Q8_0");
    EXPECT_EQ(kept(type, true), "F32");
  }
}

TEST_F(LoraAdapterTest, AMissingHalfOfAPairIsNamed) {
  TinyAdapter whole = adapter_;
  for (const char* name : {"lora_A", "lora_B"}) {
    adapter_ = whole;
    adapter_.tensors.erase("base_model.model.model.layers.1.mlp.down_proj." +
                           std::string(name) + ".weight");
    ExpectRefused({"layers.1.mlp.down_proj.lora_A.weight\"", " has no ",
                   "layers.1.mlp.down_proj.lora_B.weight\""});
  }
}

TEST_F(LoraAdapterTest, WrongShapesAreNamed) {
  struct Case {
    const char* name;
    std::vector<int64_t> shape;
    const char* says;
  };
  const TinyAdapter whole = adapter_;
  for (const Case& c : {
           Case{"self_attn.q_proj.lora_A.weight", {3, 9}, "expected [3, 8]"},
           {"self_attn.q_proj.lora_A.weight", {8, 3}, "expected [3, 8]"},
           {"self_attn.q_proj.lora_A.weight", {4, 8}, "expected [3, 8]"},
           {"self_attn.q_proj.lora_A.weight", {24}, "expected [3, 8]"},
           {"self_attn.q_proj.lora_A.weight", {}, "expected [3, 8]"},
           {"self_attn.q_proj.lora_B.weight", {12, 3}, "expected [24, 3]"},
           {"mlp.down_proj.lora_B.weight", {8, 2}, "expected [8, 3]"},
           {"input_layernorm.weight", {6}, "expected [8]"},
           {"input_layernorm.weight", {1, 8}, "expected [8]"},
           {"mlp.up_proj.weight", {12}, "expected [12, 8]"},
       }) {
    adapter_ = whole;
    adapter_.Add(Layer1(c.name), c.shape);
    ExpectRefused({c.name, c.says});
  }
}

TEST_F(LoraAdapterTest, WhatTheModelDoesNotHaveIsNamed) {
  const TinyAdapter whole = adapter_;
  for (const char* name :
       {"model.layers.2.self_attn.q_proj.lora_A.weight",
        "model.layers.01.self_attn.q_proj.lora_A.weight",
        "model.layers.1.self_attn.qkv_proj.lora_A.weight",
        "model.layers.1.input_layernorm.lora_A.weight",
        "model.embed_tokens.lora_A.weight",
        "model.layers.1.self_attn.q_norm.weight",
        "model.layers.1.self_attn.q_proj.bias", "score.weight",
        "model.layers.1.self_attn.q_proj.lora_magnitude_vector",
        "model.layers.1.self_attn.q_proj.lora_A.default.weight",
        "model.layers.1.self_attn.q_proj.lora_B.bias",
        "model.embed_tokens.lora_embedding_A"}) {
    adapter_ = whole;
    adapter_.Add(name, {3, 8});
    if (std::string(name).ends_with("lora_A.weight")) {
      std::string other = name;
      other.replace(other.size() - 8, 1, "B");
      adapter_.Add(other, {24, 3});
    }
    ExpectRefused({name, "llama of 2 layers"});
  }
  adapter_ = whole;
  adapter_.tensors["model.layers.1.self_attn.v_proj.lora_A.weight"] =
      adapter_.tensors.begin()->second;
  ExpectRefused({"model.layers.1.self_attn.v_proj"});
}

TEST_F(LoraAdapterTest, NumbersMustBeFinite) {
  const TinyAdapter whole = adapter_;
  const std::string prefix = TinyAdapter::kPrefix;
  for (const std::string& name : {Layer1("mlp.down_proj.lora_A.weight"),
                                  Layer1("mlp.down_proj.lora_B.weight"),
                                  Layer1("post_attention_layernorm.weight")}) {
    for (const float value : {std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()}) {
      adapter_ = whole;
      adapter_.Add(Layer1("post_attention_layernorm.weight"), {8});
      adapter_.tensors[prefix + name].bytes.replace(20, 4, Bytes(value));
      ExpectRefused({name, std::isnan(value) ? "a NaN" : "an infinity"});
    }
  }
  adapter_ = whole;
  for (const char* half : {"lora_A", "lora_B"}) {
    adapter_.tensors[prefix + Layer1("mlp.down_proj.") + half + ".weight"]
        .bytes.replace(20, 4, Bytes(1e30f));
  }
  ExpectRefused({"mlp.down_proj.lora_A.weight", "allowed are up to 1e+06"});
}

TEST_F(LoraAdapterTest, SavedModulesMustBeInTheFile) {
  adapter_.config["modules_to_save"] = {"embed_tokens"};
  ExpectRefused({"lacks", "model.embed_tokens.weight", "\"embed_tokens\""});
  adapter_.config["modules_to_save"] = {"lm_head"};
  ExpectRefused({"lacks", "lm_head.weight"});
  adapter_.config["modules_to_save"] = {"input_layernorm"};
  adapter_.Add(Layer1("input_layernorm.weight"), {8});
  ExpectRefused({"lacks", "model.layers.0.input_layernorm.weight"});
  adapter_.config["modules_to_save"] = {"score"};
  ExpectRefused({"\"score\"", "no module of the model"});
}

TEST_F(LoraAdapterTest, OtherTypesAreRefusedByName) {
  const std::string name =
      TinyAdapter::kPrefix + Layer1("mlp.down_proj.lora_A.weight");
  adapter_.tensors[name].type = "I32";
  const absl::Status status = Refusal();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(name), HasSubstr("I32"),
                    HasSubstr("F32, F16 and BF16 are")));
}

TEST_F(LoraAdapterTest, FilesThatAreNotThere) {
  Checkpoint checkpoint = LoadHuggingFace(TinyModel::HuggingFace("llama"));
  const auto apply = [&](const std::string& path) {
    return ApplyLoraAdapter(path, false, &checkpoint).status();
  };
  absl::Status status = apply(adapter_files_.path());
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("adapter_config.json"));
  adapter_files_.Write("adapter_config.json", adapter_.config.dump());
  status = apply(adapter_files_.path());
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("adapter_model.safetensors"));
  EXPECT_FALSE(apply(adapter_files_.Path("adapter_config.json")).ok());
}

TEST_F(LoraAdapterTest, CutAndEmptyFiles) {
  const std::string file = adapter_.SafetensorsFile();
  Checkpoint checkpoint = LoadHuggingFace(TinyModel::HuggingFace("llama"));
  adapter_.Write(adapter_files_);
  for (size_t size = 0; size < file.size(); size += 1 + size / 16) {
    adapter_files_.Write("adapter_model.safetensors", file.substr(0, size));
    const absl::Status status =
        ApplyLoraAdapter(adapter_files_.path(), false, &checkpoint).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << size << status;
    EXPECT_THAT(std::string(status.message()),
                StartsWith(adapter_files_.Path("adapter_model.safetensors")));
  }
  adapter_.tensors.clear();
  ExpectRefused({"has no tensors"});
}

}  // namespace
}  // namespace strata
