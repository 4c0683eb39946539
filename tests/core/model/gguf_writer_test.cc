#include "tests/core/model/gguf_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"
#include "kernels/cpu/dequantize.h"
#include "tests/core/model/temp_files.h"
#include "tests/testing/near.h"

namespace strata {
namespace {

// A matrix in the order that `view` means.
std::vector<float> Values(const WeightView& view) {
  std::vector<float> values(view.rows * view.cols);
  for (int64_t row = 0; row < view.rows; ++row) {
    cpu::DequantizeRow(view, row, values.data() + row * view.cols);
  }
  return values;
}

// Each WeightView of a layer.
std::vector<const WeightView*> Views(const LayerWeights& layer) {
  return {&layer.attention_norm,
          &layer.wq,
          &layer.wk,
          &layer.wv,
          &layer.wo,
          &layer.bq,
          &layer.bk,
          &layer.bv,
          &layer.bo,
          &layer.q_norm,
          &layer.k_norm,
          &layer.mlp_norm,
          &layer.gate,
          &layer.up,
          &layer.down};
}

void ExpectSameModel(const Checkpoint& got, const Checkpoint& want, float abs) {
  EXPECT_EQ(got.config.num_layers, want.config.num_layers);
  EXPECT_EQ(got.config.num_kv_heads, want.config.num_kv_heads);
  EXPECT_EQ(got.config.head_dim, want.config.head_dim);
  EXPECT_EQ(got.config.max_positions, want.config.max_positions);
  EXPECT_EQ(got.config.rms_norm_eps, want.config.rms_norm_eps);
  EXPECT_EQ(got.config.tied_embeddings, want.config.tied_embeddings);
  EXPECT_EQ(got.eos_ids, want.eos_ids);
  EXPECT_TRUE(AllNear(got.config.rope_inv_freq, want.config.rope_inv_freq, 0.0f,
                      2e-7f));
  EXPECT_TRUE(
      AllNear(Values(got.embedding), Values(want.embedding), abs, 0.0f));
  EXPECT_TRUE(AllNear(Values(got.head), Values(want.head), abs, 0.0f));
  EXPECT_TRUE(
      AllNear(Values(got.final_norm), Values(want.final_norm), 0.0f, 0.0f));
  ASSERT_EQ(got.layers.size(), want.layers.size());
  for (size_t i = 0; i < got.layers.size(); ++i) {
    const auto got_views = Views(got.layers[i]),
               want_views = Views(want.layers[i]);
    for (size_t v = 0; v < got_views.size(); ++v) {
      SCOPED_TRACE(std::to_string(i) + " view " + std::to_string(v));
      ASSERT_EQ(got_views[v]->data == nullptr, want_views[v]->data == nullptr);
      EXPECT_TRUE(
          AllNear(Values(*got_views[v]), Values(*want_views[v]), abs, 0.0f));
    }
  }
}

TEST(GgufWriterTest, F32AndBf16HoldTheSameModel) {
  const TempDirectory directory;
  for (const char* name : {"llama-tied", "llama3-ropescaled", "mistral",
                           "qwen2-bias", "qwen3-qknorm"}) {
    const std::string golden = std::string("tests/golden/") + name;
    auto want = LoadCheckpoint(golden);
    ASSERT_TRUE(want.ok()) << want.status();
    for (const DType type : {DType::kF32, DType::kBF16}) {
      SCOPED_TRACE(std::string(name) + " " + DTypeName(type));
      const std::string path = directory.Path(std::string(name) + ".gguf");
      ASSERT_EQ(WriteGguf(golden, {.type = type}, path), absl::OkStatus());
      auto got = LoadCheckpoint(path);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_EQ(got->weight_format, DTypeName(type));
      ExpectSameModel(*got, *want, 0.0f);
      const bool is_llama = got->config.architecture == "llama";
      EXPECT_EQ(got->layers[0].wk.interleaved_head_dim,
                is_llama ? want->config.head_dim : 0);
      EXPECT_EQ(got->layers[0].wv.interleaved_head_dim, 0);
    }
  }
}

TEST(GgufWriterTest, QuantisedOnesHoldNearlyTheSameModel) {
  const TempDirectory directory;
  for (const char* name : {"llama-tied", "qwen3-qknorm"}) {
    const std::string golden = std::string("tests/golden/") + name;
    auto want = LoadCheckpoint(golden);
    ASSERT_TRUE(want.ok()) << want.status();
    float largest = 0.0f;
    for (const LayerWeights& layer : want->layers) {
      for (const WeightView* view : Views(layer)) {
        for (const float v : Values(*view))
          largest = std::max(largest, std::abs(v));
      }
    }
    for (const float v : Values(want->embedding))
      largest = std::max(largest, std::abs(v));
    for (const auto& [type, steps] :
         {std::pair(DType::kF16, 2000.0f), std::pair(DType::kQ8_0, 200.0f),
          std::pair(DType::kQ4_0, 8.0f), std::pair(DType::kQ4_1, 14.0f)}) {
      SCOPED_TRACE(std::string(name) + " " + DTypeName(type));
      const std::string path = directory.Path(std::string(name) + ".gguf");
      ASSERT_EQ(WriteGguf(golden, {.type = type}, path), absl::OkStatus());
      auto quantised = LoadCheckpoint(path);
      ASSERT_TRUE(quantised.ok()) << quantised.status();
      EXPECT_EQ(quantised->weight_format, DTypeName(type));
      ExpectSameModel(*quantised, *want, largest / steps);

      const std::string rounded_path =
          directory.Path(std::string(name) + "-rounded.gguf");
      ASSERT_EQ(WriteGguf(golden, {.type = type, .store_rounded_as_f32 = true},
                          rounded_path),
                absl::OkStatus());
      auto rounded = LoadCheckpoint(rounded_path);
      ASSERT_TRUE(rounded.ok()) << rounded.status();
      EXPECT_EQ(rounded->weight_format, "F32");
      ExpectSameModel(*rounded, *quantised, 0.0f);
    }
  }
}

}  // namespace
}  // namespace strata
