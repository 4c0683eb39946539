#include "core/model/weight_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace strata {
namespace {

using testing::HasSubstr;

// Of the shape of Qwen3-8B; only the shape counts.
Checkpoint MakeCheckpoint() {
  Checkpoint checkpoint;
  ModelConfig& config = checkpoint.config;
  config.num_layers = 2;
  config.hidden_size = 4096;
  config.intermediate_size = 12288;
  config.num_heads = 32;
  config.num_kv_heads = 8;
  config.head_dim = 128;
  config.vocab_size = 151936;
  checkpoint.layers.resize(2);
  for (LayerWeights& layer : checkpoint.layers) layer.wo.type = DType::kBF16;
  return checkpoint;
}

std::string ErrorOf(const Checkpoint& checkpoint, int num_ranks) {
  const absl::Status status = CheckSplit(checkpoint, num_ranks);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(WeightSplitTest, HeadsOfOneGroupStayTogether) {
  const SplitUnits units(MakeCheckpoint().config);
  EXPECT_EQ(units.key_value, 128);
  EXPECT_EQ(units.query, 4 * 128);
}

TEST(WeightSplitTest, DivisorsOfTheKvHeadsAreTaken) {
  const Checkpoint checkpoint = MakeCheckpoint();
  for (const int num_ranks : {1, 2, 4, 8}) {
    EXPECT_TRUE(CheckSplit(checkpoint, num_ranks).ok()) << num_ranks;
  }
  for (const int num_ranks : {3, 5, 6, 7, 16}) {
    EXPECT_EQ(
        ErrorOf(checkpoint, num_ranks),
        "the model has 8 KV heads, and each device takes as many: allowed "
        "are 1, 2, 4, 8");
  }
}

TEST(WeightSplitTest, EachDeviceHasSomethingOfMlpAndVocabulary) {
  Checkpoint checkpoint = MakeCheckpoint();
  checkpoint.config.intermediate_size = 100;
  EXPECT_TRUE(CheckSplit(checkpoint, 4).ok());
  EXPECT_EQ(
      ErrorOf(checkpoint, 8),
      "the model has intermediate_size 100, of which a device takes 32 or "
      "more: allowed are at most 4");
  checkpoint = MakeCheckpoint();
  checkpoint.config.vocab_size = 33;
  EXPECT_TRUE(CheckSplit(checkpoint, 2).ok());
  EXPECT_THAT(ErrorOf(checkpoint, 4), HasSubstr("vocab_size 33"));
}

TEST(WeightSplitTest, BlocksOfWeightsAreNotCut) {
  Checkpoint checkpoint = MakeCheckpoint();
  checkpoint.config.num_heads = checkpoint.config.num_kv_heads = 4;
  checkpoint.config.head_dim = 80;
  EXPECT_TRUE(CheckSplit(checkpoint, 4).ok());
  checkpoint.layers[1].wo.type = DType::kQ8_0;
  EXPECT_TRUE(CheckSplit(checkpoint, 2).ok());  // 160 inputs each
  const std::string error = ErrorOf(checkpoint, 4);
  EXPECT_THAT(error, HasSubstr("attn_output (o_proj) of layer 1 is Q8_0"));
  EXPECT_THAT(error, HasSubstr("would take 80"));
  // What an adapter's matrix is merged into counts.
  checkpoint.layer_updates.resize(2);
  LowRankUpdate& update = checkpoint.layer_updates[1].wo;
  const std::byte a = {};
  update.a.data = &a;
  update.merged_type = DType::kBF16;
  EXPECT_TRUE(CheckSplit(checkpoint, 4).ok());
  update.merged_type = DType::kQ8_0;
  EXPECT_FALSE(CheckSplit(checkpoint, 4).ok());
}

}  // namespace
}  // namespace strata
