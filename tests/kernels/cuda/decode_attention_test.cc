#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cuda/ops.h"
#include "kernels/cuda/split.cuh"
#include "tests/kernels/cuda/paged_problem.h"
#include "tests/testing/device_array.h"
#include "tests/testing/for_each_schedule.h"
#include "tests/testing/near.h"

namespace strata {
namespace {

// Twice, as a launch has to leave `arrived` as it found it.
std::vector<float> Attend(const PagedProblem& problem, int kv_heads,
                          int head_dim, int max_splits) {
  const size_t parts =
      size_t{1} * problem.rows() * problem.q_heads() * max_splits;
  const DeviceArray<float> out(parts * head_dim), lse(parts);
  const DeviceArray<uint32_t> arrived(
      std::vector<uint32_t>(problem.rows() * kv_heads));
  for (int i = 0; i < 2; ++i) {
    problem.FillOutputWithNan();
    out.FillWithNan();
    lse.FillWithNan();
    EXPECT_EQ(cuda::DecodeAttention(
                  problem.args(),
                  {out.get(), lse.get(), arrived.get(), max_splits}, nullptr),
              cudaSuccess);
  }
  return problem.Output();
}

// bf16 rounds the weights of the values and the result; of pages of fp8 as
// much, as what they hold is what is wanted.
void ExpectMatches(TestShape shape, int max_splits, int schedules) {
  for (const auto format : {cuda::KvFormat::kBf16, cuda::KvFormat::kFp8}) {
    SCOPED_TRACE(format == cuda::KvFormat::kFp8 ? "fp8" : "bf16");
    shape.format = format;
    const PagedProblem problem(shape);
    ForEachSchedule(schedules, [&] {
      EXPECT_TRUE(
          AllNear(Attend(problem, shape.kv_heads, shape.head_dim, max_splits),
                  problem.want(), 2e-3f, 4e-3f));
    });
  }
}

TEST(DecodeAttentionTest, PositionsAroundTilesAndPages) {
  for (int position : {0, 1, 14, 15, 16, 30, 31, 62, 63, 64, 127, 256}) {
    SCOPED_TRACE(position);
    ExpectMatches({.chunks = {{.first_position = position}}}, 1, 4);
  }
}

TEST(DecodeAttentionTest, RowsOfMixedStrategiesAndLengths) {
  for (int max_splits : {1, 2, 5}) {
    SCOPED_TRACE(max_splits);
    ExpectMatches({.head_dim = 128,
                   .chunks = {{.strategy = 2, .first_position = 16},
                              {.strategy = 0, .first_position = 330},
                              {.strategy = 1, .first_position = 256}}},
                  max_splits, 4);
  }
}

TEST(DecodeAttentionTest, EveryGroup) {
  for (int group = 1; group <= 16; ++group) {
    SCOPED_TRACE(group);
    ExpectMatches({.head_dim = 32,
                   .group = group,
                   .chunks = {{.strategy = 1, .first_position = 67}}},
                  2, 2);
  }
}

TEST(DecodeAttentionTest, EveryHeadDim) {
  for (int head_dim : {16, 32, 64, 80, 96, 128, 256}) {
    for (int group : {2, 9}) {
      SCOPED_TRACE(::testing::Message() << head_dim << " group " << group);
      ExpectMatches({.head_dim = head_dim,
                     .group = group,
                     .kv_heads = 1,
                     .chunks = {{.first_position = 200}}},
                    2, 2);
    }
  }
}

TEST(DecodeAttentionTest, ScratchOfMoreSplitsThanAreUsed) {
  ExpectMatches({.head_dim = 16,
                 .group = 2,
                 .kv_heads = 1,
                 .chunks = {{.first_position = 150}, {.first_position = 70}}},
                cuda::Split::kMaxSplits + 1, 1);
}

// The smallest with one head: fp8 pads it.
TEST(DecodeAttentionTest, EveryPageSize) {
  for (int page_tokens : {4, 8, 16, 32, 64, 128}) {
    SCOPED_TRACE(page_tokens);
    ExpectMatches({.kv_heads = page_tokens == 4 ? 1 : 2,
                   .page_tokens = page_tokens,
                   .chunks = {{.strategy = 1, .first_position = 130}}},
                  2, 2);
  }
}

// Small, so that the simulator has all blocks under way at once.
TEST(DecodeAttentionTest, BlocksMeetInAnyOrder) {
  ExpectMatches(
      {.head_dim = 16, .kv_heads = 1, .chunks = {{.first_position = 150}}}, 3,
      20);
}

TEST(DecodeAttentionTest, LogitsThatGrowOrShrinkByHundreds) {
  for (float ramp : {0.2f, -0.2f}) {
    SCOPED_TRACE(ramp);
    ExpectMatches(
        {.scale = 4.0f, .ramp = ramp, .chunks = {{.first_position = 200}}}, 2,
        2);
  }
}

// Each sees those before it, though the keys of all are there.
TEST(DecodeAttentionTest, RowsOfOneSequence) {
  ExpectMatches({.chunks = {{.first_position = 62, .num_rows = 4}}}, 2, 2);
}

TEST(DecodeAttentionTest, WhatIsNotFiniteShows) {
  for (const int which : {0, 1}) {
    const PagedProblem problem({.head_dim = 32,
                                .chunks = {{.first_position = 70}},
                                .format = cuda::KvFormat::kFp8,
                                .not_finite = which});
    EXPECT_TRUE(std::ranges::all_of(
        Attend(problem, /*kv_heads=*/2, /*head_dim=*/32, /*max_splits=*/2),
        [](float v) { return std::isnan(v); }));
  }
}

TEST(DecodeAttentionTest, PaddingRowsGetZeros) {
  ExpectMatches({.chunks = {{.first_position = -1},
                            {.strategy = 1, .first_position = 5},
                            {.first_position = -1, .num_rows = 2}}},
                2, 2);
}

TEST(DecodeAttentionTest, NoRowsIsNoLaunch) {
  const cuda::AttentionArgs args = {.step = {.rows = 0},
                                    .pages = {.kv_heads = 1, .head_dim = 64},
                                    .q_heads = 1};
  EXPECT_EQ(cuda::DecodeAttention(args, {}, nullptr), cudaSuccess);
}

TEST(DecodeAttentionTest, RefusesOtherShapes) {
  cuda::AttentionArgs args = {.step = {.rows = 1},
                              .pages = {.kv_heads = 2, .head_dim = 48},
                              .q_heads = 2};
  EXPECT_EQ(cuda::DecodeAttention(args, {}, nullptr), cudaErrorInvalidValue);
  args.pages.head_dim = 64;
  for (int q_heads : {3, 34}) {
    args.q_heads = q_heads;
    EXPECT_EQ(cuda::DecodeAttention(args, {}, nullptr), cudaErrorInvalidValue);
  }
}

TEST(SplitTest, CoverAllTokensOnceInOrder) {
  for (int tokens : {1, 63, 64, 65, 257, 1000, 32768, 131072}) {
    for (int max_splits : {1, 2, 7, 48, 1000}) {
      SCOPED_TRACE(::testing::Message() << tokens << " in " << max_splits);
      const int count = cuda::Split(0, tokens, max_splits).count;
      EXPECT_LE(count, std::min(max_splits, cuda::Split::kMaxSplits));
      int end = 0;
      for (int i = 0; i < count; ++i) {
        const cuda::Split split(i, tokens, max_splits);
        EXPECT_EQ(split.begin, end);
        EXPECT_GT(split.end, split.begin);
        end = split.end;
      }
      EXPECT_EQ(end, tokens);
    }
  }
}

TEST(SplitTest, AsManyAsPay) {
  EXPECT_EQ(cuda::Split(0, 64, 100).count, 1);
  EXPECT_EQ(cuda::Split(0, 1024, 100).count, 8);
  EXPECT_EQ(cuda::Split(0, 32768, 100).count, 43);  // of 12 rounds
  EXPECT_EQ(cuda::Split(0, 32768, 6).count, 6);
}

}  // namespace
}  // namespace strata
