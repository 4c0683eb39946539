#include "kernels/cpu/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "tests/kernels/cpu/attention_problem.h"
#include "tests/testing/near.h"

namespace strata::cpu {
namespace {

std::string TypeName(KvType type) {
  return type == KvType::kF32 ? "f32" : "bf16";
}

class AttentionTest : public ::testing::TestWithParam<std::tuple<Isa, KvType>> {
 protected:
  void SetUp() override {
    if (isa() > DetectIsa()) GTEST_SKIP() << "not on this machine";
  }

  Isa isa() const { return std::get<0>(GetParam()); }
  KvType type() const { return std::get<1>(GetParam()); }

  // AVX-512 rounds queries to bf16 too.
  float tolerance() const {
    return type() == KvType::kBF16 && isa() == Isa::kAvx512 ? 3e-2f : 2e-5f;
  }

  void ExpectRight(AttentionShape shape,
                   const std::vector<ChunkShape>& chunks) const {
    shape.type = type();
    const AttentionProblem problem(shape, chunks);
    for (int layer = 0; layer < AttentionProblem::kLayers; ++layer) {
      EXPECT_TRUE(AllNear(problem.Run(layer, isa(), 2),
                          problem.Reference(layer), tolerance(), tolerance()))
          << "layer " << layer << ", group " << shape.group << ", head_dim "
          << shape.head_dim << ", page_tokens " << shape.page_tokens
          << ", first chunk at " << chunks[0].first_position << " with "
          << chunks[0].num_rows << " rows";
    }
  }
};

TEST_P(AttentionTest, AnyContextLength) {
  for (const int context : {1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000}) {
    ExpectRight({.kv_heads = 2, .group = 3, .head_dim = 32},
                {{.sequence = 1, .first_position = context - 1}});
  }
}

TEST_P(AttentionTest, AnyGroup) {
  for (const int group : {1, 2, 3, 4, 5, 7, 8, 16, 25, 32}) {
    ExpectRight({.kv_heads = 2, .group = group, .head_dim = 16},
                {{.sequence = 1, .first_position = 100, .num_rows = 1},
                 {.sequence = 2, .first_position = 61, .num_rows = 31}});
  }
}

TEST_P(AttentionTest, AnyHeadDim) {
  for (const int head_dim : {2, 16, 32, 50, 64, 80, 96, 128, 256}) {
    ExpectRight({.kv_heads = 3, .group = 2, .head_dim = head_dim},
                {{.sequence = 1, .first_position = 257, .num_rows = 1},
                 {.sequence = 2, .first_position = 0, .num_rows = 33}});
  }
}

TEST_P(AttentionTest, AnyPageSize) {
  for (const int page_tokens : {4, 8, 16, 32, 64, 128}) {
    ExpectRight(
        {.kv_heads = 2, .group = 3, .head_dim = 20, .page_tokens = page_tokens},
        {{.sequence = 1, .first_position = 301, .num_rows = 1},
         {.sequence = 2, .first_position = 250, .num_rows = 20}});
  }
}

TEST_P(AttentionTest, ChunksOfDifferentStrategies) {
  ExpectRight(
      {.kv_heads = 2, .group = 4, .head_dim = 16},
      {{.sequence = 1, .first_position = 30, .num_rows = 1, .strategy = 0},
       {.sequence = 2, .first_position = 520, .num_rows = 40, .strategy = 0},
       {.sequence = 3, .first_position = 0, .num_rows = 1, .strategy = 1},
       {.sequence = 4, .first_position = 300, .num_rows = 1, .strategy = 1},
       {.sequence = 5, .first_position = 0, .num_rows = 70, .strategy = 1}});
}

TEST_P(AttentionTest, NoRows) {
  const AttentionProblem problem({.type = type()}, {});
  EXPECT_TRUE(problem.Run(0, isa(), 2).empty());
}

// The bits of a row are the same in chunks of any length, with any company,
// number of workers and numbering of pages.
TEST_P(AttentionTest, BitsDoNotDependOnTheStep) {
  constexpr int kLength = 600;
  const AttentionShape shape = {.kv_heads = 2,
                                .group = 3,
                                .head_dim = 32,
                                .page_tokens = 16,
                                .type = type()};
  const AttentionProblem whole(shape, {{.sequence = 7, .num_rows = kLength}});
  const std::vector<float> want = whole.Run(0, isa(), 1);
  const int64_t row_floats = whole.row_floats();
  const auto expect_equal = [&](const std::vector<float>& got, int64_t got_row,
                                int first, int num_rows,
                                const std::string& what) {
    EXPECT_TRUE(std::equal(want.begin() + first * row_floats,
                           want.begin() + (first + num_rows) * row_floats,
                           got.begin() + got_row * row_floats))
        << what << ", positions from " << first;
  };
  for (const int workers : {2, 3}) {
    expect_equal(whole.Run(0, isa(), workers), 0, 0, kLength,
                 std::to_string(workers) + " workers");
  }
  for (const int length : {1, 7, 300}) {
    for (int first = 0; first < kLength; first += length) {
      if (length == 1 && first % 29 != 0) continue;
      const int rows = std::min(length, kLength - first);
      const AttentionProblem chunk(
          shape, {{.sequence = 7, .first_position = first, .num_rows = rows}},
          /*page_seed=*/first + 2);
      expect_equal(chunk.Run(0, isa(), first % 3 + 1), 0, first, rows,
                   "chunk of " + std::to_string(length));
    }
  }
  const AttentionProblem batch(
      shape,
      {{.sequence = 1, .first_position = 700, .num_rows = 1},
       {.sequence = 7, .first_position = 599, .num_rows = 1, .strategy = 1},
       {.sequence = 2, .first_position = 3, .num_rows = 90},
       {.sequence = 7, .first_position = 250, .num_rows = 13}});
  for (const int workers : {1, 2, 3}) {
    const std::vector<float> got = batch.Run(0, isa(), workers);
    expect_equal(got, 1, 599, 1, "decode in a batch");
    expect_equal(got, 92, 250, 13, "chunk in a batch");
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, AttentionTest,
    ::testing::Combine(::testing::Values(Isa::kPortable, Isa::kAvx2,
                                         Isa::kAvx512),
                       ::testing::Values(KvType::kF32, KvType::kBF16)),
    [](const auto& info) {
      return std::string(IsaName(std::get<0>(info.param))) + "_" +
             TypeName(std::get<1>(info.param));
    });

}  // namespace
}  // namespace strata::cpu
