#include "planner/roofline.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/planner/plan_fixture.h"

namespace strata {
namespace {

// Two layers that are easy to count: hidden 32, 2 query heads and 1 KV head of
// 16, intermediate 64, vocabulary 100.
PlannedModel SmallModel() {
  ModelDescription description;
  description.config = {.architecture = "llama",
                        .num_layers = 2,
                        .hidden_size = 32,
                        .intermediate_size = 64,
                        .num_heads = 2,
                        .num_kv_heads = 1,
                        .head_dim = 16,
                        .vocab_size = 100,
                        .max_positions = 1000,
                        .rms_norm_eps = 1e-6f,
                        .rope_inv_freq = {},
                        .tied_embeddings = false};
  return *ModelOfShape("small", description, DType::kF32);
}

constexpr double kKv = 2 * 16 * 32;                    // elements
constexpr double kOthers = 2 * 32 * 32 + 3 * 64 * 32;  // elements
constexpr double kHead = 100 * 32;                     // elements
constexpr double kHeadBytes = 4 * 128 * 32 + 4 * 32;   // tiles of 32
// wk and wv have 16 outputs, half a tile.
constexpr double kLayerBytes = 4 * kKv * 2 + 4 * kOthers + 8 * 32;
constexpr double kLeaderBytes = 2 * 16 * 2;
class SmallRoofline : public ::testing::Test {
 protected:
  const PlannedModel planned_ = SmallModel();
  const ModelCosts costs_ = CostsOf(planned_.checkpoint, /*is_gpu=*/false);
  const RooflineModel model_ = {.config = &planned_.checkpoint.config,
                                .costs = &costs_,
                                .leader_bytes = int64_t{2 * 16 * 2}};
  const SharingStrategy full_ = SharingStrategy::Full(2);
  const SharingStrategy shared_ = *SharingStrategy::Parse("every=2", 2);
};

TEST_F(SmallRoofline, DecodeReadsWeightsOnceAndTheCacheOfEachInEveryLayer) {
  const Work work = DecodeWork(model_, full_, 3, 70);
  EXPECT_EQ(work.bytes,
            2 * kLayerBytes + kHeadBytes + 3 * 2 * 70 * kLeaderBytes);
  EXPECT_EQ(work.flops,
            3 * (2 * (2 * (kKv + kOthers) + 4 * 70 * 2 * 16) + 2 * kHead));
}

TEST_F(SmallRoofline, AFollowerSkipsItsProjectionsAndReadsItsLeader) {
  const Work full = DecodeWork(model_, full_, 3, 70);
  const Work shared = DecodeWork(model_, shared_, 3, 70);
  EXPECT_EQ(full.bytes - shared.bytes, 4 * kKv * 2);
  EXPECT_EQ(full.flops - shared.flops, 3 * 2 * kKv);
}

TEST_F(SmallRoofline, PrefillEndsAtTheLastLeader) {
  const double n = 50, attention = 4 * 2 * 16;
  const double whole_layer =
      n * 2 * (kKv + kOthers) + attention * n * (n + 1) / 2;
  const double last_row = 2 * kOthers + attention * n;
  const Work full = PrefillWork(model_, full_, 50);
  EXPECT_EQ(full.flops, whole_layer + n * 2 * kKv + last_row + 2 * kHead);
  EXPECT_EQ(full.bytes, 2 * kLayerBytes + kHeadBytes + 2 * 50 * kLeaderBytes);
  // Layer 0 is the only leader: all rows end in it.
  EXPECT_EQ(PrefillWork(model_, shared_, 50).flops,
            n * 2 * kKv + 2 * last_row + 2 * kHead);
}

TEST(EstimateTest, NamesWhatLimits) {
  Hardware hardware;
  hardware.read_bytes_per_second = 100;
  hardware.flops_per_second = 1000;
  const Estimate memory = EstimateOn(hardware, {.bytes = 300, .flops = 2000});
  EXPECT_EQ(memory.seconds, 3);
  EXPECT_FALSE(memory.is_compute_bound);
  const Estimate compute = EstimateOn(hardware, {.bytes = 300, .flops = 5000});
  EXPECT_EQ(compute.seconds, 5);
  EXPECT_TRUE(compute.is_compute_bound);
}

// Bytes read over the data sheets' bandwidths, computed by hand.
TEST(EstimateTest, Qwen3OnPublicGpus) {
  struct Row {
    const char* device;
    double full, quarter;
  };
  const PlannedModel model = PublicModel("qwen3-8b");
  for (const Row& row : {Row{"h200", 240, 246}, Row{"h100", 168, 172},
                         Row{"a100", 102, 104.5}}) {
    SCOPED_TRACE(row.device);
    PlanRequest request = PaperRequest(32768, 128);
    request.hardware = *FindHardware(row.device);
    const CapacityPlan plan = PlanOf(model, request);
    const auto& full = plan.strategies[0].decode[0];
    EXPECT_NEAR(full.step.work.bytes, 19.97e9, 0.01e9);
    EXPECT_NEAR(full.TokensPerSecond(), row.full, 0.6);
    EXPECT_NEAR(plan.strategies[2].decode[0].TokensPerSecond(), row.quarter,
                0.6);
    EXPECT_FALSE(full.step.is_compute_bound);
    EXPECT_TRUE(plan.strategies[0].first_token.is_compute_bound);
  }
}

}  // namespace
}  // namespace strata
