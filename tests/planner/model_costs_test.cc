#include "planner/model_costs.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/packed_model.h"
#include "core/transformer.h"
#include "kernels/cpu/cpu_backend.h"
#include "planner/planned_model.h"
#include "tests/testing/forwarding_backend.h"

namespace strata {
namespace {

// The CPU backend, with the bytes that it is asked for.
class CountingBackend final : public ForwardingBackend {
 public:
  CountingBackend()
      : ForwardingBackend(
            std::make_unique<cpu::CpuBackend>(cpu::CpuOptions{})) {}

  std::unique_ptr<Matrix> Pack(const WeightView& view) override {
    auto matrix = ForwardingBackend::Pack(view);
    num_bytes += matrix->num_bytes();
    return matrix;
  }
  float* NewFloats(int64_t count) override {
    num_bytes += 4 * count;
    return ForwardingBackend::NewFloats(count);
  }
  float* NewFloats(const WeightView& view) override {
    num_bytes += 4 * view.rows * view.cols;
    return ForwardingBackend::NewFloats(view);
  }

  int64_t num_bytes = 0;
};

class GoldenModelTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenModelTest, CostsAreWhatTheBackendIsAskedFor) {
  const auto model =
      ReadModel(std::string("tests/golden/") + GetParam(), std::nullopt);
  ASSERT_TRUE(model.ok()) << model.status();
  const Checkpoint& checkpoint = model->checkpoint;
  const ModelConfig& config = checkpoint.config;
  const ModelCosts costs = CostsOf(checkpoint, /*is_gpu=*/false);
  CountingBackend backend;
  PackedModel packed = PackModel(checkpoint, &backend, [](int) {});
  // The frequencies of RoPE are no weights.
  const int64_t packed_bytes = backend.num_bytes - 4 * (config.head_dim / 2);
  EXPECT_EQ(costs.BytesRead(SharingStrategy::Full(config.num_layers)),
            packed_bytes);
  EXPECT_EQ(costs.held_bytes, packed_bytes + checkpoint.embedding.NumBytes());
  const auto planned = PackedModelBytes(checkpoint, backend);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(*planned, costs.held_bytes);
  EXPECT_LE(*planned, costs.held_bytes + checkpoint.embedding.NumBytes() / 8);
  for (const int rows : {1, 31, 33, 257}) {
    SCOPED_TRACE(rows);
    PackedModel copy;
    copy.config = config;
    backend.num_bytes = 0;
    const Transformer transformer(std::move(copy), &backend, rows);
    EXPECT_EQ(ActivationBytes(config, rows, /*is_gpu=*/false),
              backend.num_bytes);
    EXPECT_GT(ActivationBytes(config, rows, /*is_gpu=*/true),
              backend.num_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModelTest,
                         ::testing::Values("llama-tied", "llama3-ropescaled",
                                           "mistral", "qwen2-bias",
                                           "qwen3-qknorm"));

// kernels/cuda/pack.h: Q8_0 and Q4_0 as in the file, all others as bf16.
TEST(ModelCostsTest, GpusHoldQ4_1AsBf16) {
  Checkpoint checkpoint;
  const auto head_bytes = [&](DType type) {
    checkpoint.head = {.type = type, .rows = 7, .cols = 64};
    return CostsOf(checkpoint, /*is_gpu=*/true).head.num_bytes;
  };
  EXPECT_EQ(head_bytes(DType::kQ8_0), 7 * 2 * 34);
  EXPECT_EQ(head_bytes(DType::kQ4_0), 7 * 2 * 18);
  EXPECT_EQ(head_bytes(DType::kQ4_1), 7 * 64 * 2);
  EXPECT_EQ(head_bytes(DType::kF32), 7 * 64 * 2);
}

// But for the embedding, and what blocks of a file have scales for.
TEST(ModelCostsTest, Fp8HalvesBf16) {
  Checkpoint checkpoint;
  for (const auto& [type, head_bytes] :
       {std::pair(DType::kBF16, 7 * (64 + 4)), {DType::kQ8_0, 7 * 2 * 34}}) {
    checkpoint.head = {.type = type, .rows = 7, .cols = 64};
    checkpoint.embedding = {.type = DType::kBF16, .rows = 7, .cols = 64};
    const ModelCosts costs =
        CostsOf(checkpoint, /*is_gpu=*/true, /*fp8_weights=*/true);
    EXPECT_EQ(costs.head.num_bytes, head_bytes);
    EXPECT_EQ(costs.held_bytes, head_bytes + 7 * 64 * 2);
  }
}

TEST(ModelCostsTest, GpusHoldTheEmbeddingBesideTheHead) {
  Checkpoint checkpoint;
  checkpoint.config.tied_embeddings = true;
  checkpoint.head = {.type = DType::kBF16, .rows = 7, .cols = 64};
  checkpoint.embedding = checkpoint.head;
  EXPECT_EQ(CostsOf(checkpoint, /*is_gpu=*/true).held_bytes, 2 * 7 * 64 * 2);
}

}  // namespace
}  // namespace strata
