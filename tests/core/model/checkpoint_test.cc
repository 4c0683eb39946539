#include "core/model/checkpoint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace strata {
namespace {

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

}  // namespace
}  // namespace strata
