#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cuda/ops.h"
#include "tests/kernels/cuda/paged_problem.h"
#include "tests/testing/device_array.h"
#include "tests/testing/for_each_schedule.h"
#include "tests/testing/near.h"

namespace strata {
namespace {

// The tiles of all chunks, of `tile_rows` each but a chunk's last.
std::vector<cuda::PrefillTile> TilesOf(const TestShape& shape, int tile_rows) {
  std::vector<cuda::PrefillTile> tiles;
  int first_row = 0;
  for (const TestChunk& chunk : shape.chunks) {
    for (int row = 0; row < chunk.num_rows; row += tile_rows) {
      tiles.push_back({.first_row = first_row + row,
                       .num_rows = std::min(tile_rows, chunk.num_rows - row)});
    }
    first_row += chunk.num_rows;
  }
  return tiles;
}

std::vector<float> Attend(const PagedProblem& problem,
                          const std::vector<cuda::PrefillTile>& tiles) {
  const DeviceArray<cuda::PrefillTile> device_tiles(tiles);
  problem.FillOutputWithNan();
  EXPECT_EQ(cuda::PrefillAttention(problem.args(), device_tiles.get(),
                                   static_cast<int>(tiles.size()), nullptr),
            cudaSuccess);
  return problem.Output();
}

// bf16 rounds the weights of the values and the result; of pages of fp8 as
// much, as what they hold is what is wanted.
void ExpectMatches(TestShape shape, int schedules,
                   int tile_rows = cuda::kPrefillTileRows) {
  const std::vector<cuda::PrefillTile> tiles = TilesOf(shape, tile_rows);
  for (const auto format : {cuda::KvFormat::kBf16, cuda::KvFormat::kFp8}) {
    SCOPED_TRACE(format == cuda::KvFormat::kFp8 ? "fp8" : "bf16");
    shape.format = format;
    const PagedProblem problem(shape);
    ForEachSchedule(schedules, [&] {
      EXPECT_TRUE(
          AllNear(Attend(problem, tiles), problem.want(), 2e-3f, 4e-3f));
    });
  }
}

TEST(PrefillAttentionTest, RowsAroundTiles) {
  for (int rows : {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 129}) {
    SCOPED_TRACE(rows);
    ExpectMatches({.head_dim = 32,
                   .group = 2,
                   .chunks = {{.first_position = 0, .num_rows = rows}}},
                  4);
  }
}

TEST(PrefillAttentionTest, ChunksThatGoOnAroundSteps) {
  for (int position : {1, 15, 17, 62, 63, 64, 65, 127, 257}) {
    SCOPED_TRACE(position);
    ExpectMatches({.head_dim = 32,
                   .group = 2,
                   .kv_heads = 1,
                   .chunks = {{.first_position = position, .num_rows = 33}}},
                  4);
  }
}

TEST(PrefillAttentionTest, ChunksOfMixedStrategies) {
  ExpectMatches(
      {.chunks = {{.strategy = 2, .first_position = 16, .num_rows = 70},
                  {.strategy = 0, .first_position = 100, .num_rows = 3},
                  {.strategy = 1, .first_position = 0, .num_rows = 40}}},
      4);
}

TEST(PrefillAttentionTest, HasTheSameBitsInAnyTile) {
  const TestShape shape = {.chunks = {{.first_position = 60, .num_rows = 20}}};
  const PagedProblem problem(shape);
  const std::vector<float> whole = Attend(problem, TilesOf(shape, 20));
  EXPECT_TRUE(AllNear(whole, problem.want(), 2e-3f, 4e-3f));
  EXPECT_EQ(Attend(problem, TilesOf(shape, 7)), whole);
}

TEST(PrefillAttentionTest, EveryGroup) {
  for (int group = 1; group <= 16; ++group) {
    SCOPED_TRACE(group);
    ExpectMatches({.head_dim = 16,
                   .group = group,
                   .kv_heads = 1,
                   .chunks = {{.first_position = 50, .num_rows = 20}}},
                  2);
  }
}

TEST(PrefillAttentionTest, EveryHeadDim) {
  for (int head_dim : {16, 32, 64, 80, 96, 128, 256}) {
    for (int group : {1, 3}) {
      SCOPED_TRACE(::testing::Message() << head_dim << " group " << group);
      ExpectMatches({.head_dim = head_dim,
                     .group = group,
                     .kv_heads = 1,
                     .chunks = {{.first_position = 40, .num_rows = 66}}},
                    2);
    }
  }
}

// The smallest with one head: fp8 pads it.
TEST(PrefillAttentionTest, EveryPageSize) {
  for (int page_tokens : {4, 8, 16, 32, 64, 128}) {
    SCOPED_TRACE(page_tokens);
    ExpectMatches(
        {.group = 2,
         .kv_heads = page_tokens == 4 ? 1 : 2,
         .page_tokens = page_tokens,
         .chunks = {{.strategy = 1, .first_position = 90, .num_rows = 50}}},
        2);
  }
}

TEST(PrefillAttentionTest, LogitsThatGrowOrShrinkByHundreds) {
  for (float ramp : {0.2f, -0.2f}) {
    SCOPED_TRACE(ramp);
    ExpectMatches({.group = 2,
                   .scale = 4.0f,
                   .ramp = ramp,
                   .chunks = {{.first_position = 150, .num_rows = 64}}},
                  2);
  }
}

TEST(PrefillAttentionTest, WhatIsNotFiniteShows) {
  for (const int which : {0, 1}) {
    const TestShape shape = {.head_dim = 32,
                             .chunks = {{.first_position = 70, .num_rows = 5}},
                             .format = cuda::KvFormat::kFp8,
                             .not_finite = which};
    EXPECT_TRUE(
        std::ranges::all_of(Attend(PagedProblem(shape), TilesOf(shape, 5)),
                            [](float v) { return std::isnan(v); }));
  }
}

TEST(PrefillAttentionTest, PaddingTilesGetZeros) {
  ExpectMatches({.chunks = {{.first_position = -1, .num_rows = 5},
                            {.first_position = 3, .num_rows = 5},
                            {.first_position = -1, .num_rows = 64}}},
                2);
}

// Those of other tiles, or of none.
TEST(PrefillAttentionTest, LeavesOtherRowsAlone) {
  const TestShape shape = {.chunks = {{.first_position = 9, .num_rows = 40}}};
  const PagedProblem problem(shape);
  const std::vector<float> got =
      Attend(problem, {{.first_row = 8, .num_rows = 5}});
  const size_t row = got.size() / 40;
  const auto is_nan = [](float v) { return std::isnan(v); };
  EXPECT_TRUE(std::all_of(got.begin(), got.begin() + 8 * row, is_nan));
  EXPECT_TRUE(
      std::none_of(got.begin() + 8 * row, got.begin() + 13 * row, is_nan));
  EXPECT_TRUE(std::all_of(got.begin() + 13 * row, got.end(), is_nan));
}

TEST(PrefillAttentionTest, NoTilesIsNoLaunch) {
  const cuda::AttentionArgs args = {.step = {.rows = 0},
                                    .pages = {.kv_heads = 1, .head_dim = 64},
                                    .q_heads = 1};
  EXPECT_EQ(cuda::PrefillAttention(args, nullptr, 0, nullptr), cudaSuccess);
}

TEST(PrefillAttentionTest, RefusesOtherShapes) {
  cuda::AttentionArgs args = {.step = {.rows = 1},
                              .pages = {.kv_heads = 2, .head_dim = 48},
                              .q_heads = 2};
  EXPECT_EQ(cuda::PrefillAttention(args, nullptr, 1, nullptr),
            cudaErrorInvalidValue);
  args.pages.head_dim = 64;
  args.q_heads = 3;
  EXPECT_EQ(cuda::PrefillAttention(args, nullptr, 1, nullptr),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace strata
