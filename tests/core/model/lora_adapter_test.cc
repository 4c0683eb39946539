#include "core/model/lora_adapter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cpu/dequantize.h"
#include "tests/core/model/lora_adapter_fixture.h"

namespace strata {
namespace {

float First(const WeightView& view) {
  std::vector<float> row(view.cols);
  cpu::DequantizeRow(view, 0, row.data());
  return row[0];
}

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

}  // namespace
}  // namespace strata
