#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/ops.h"
#include "tests/kernels/cuda/append_problem.h"
#include "tests/testing/for_each_schedule.h"

namespace strata {
namespace {

void ExpectMatches(const AppendShape& shape) {
  const AppendProblem problem(shape);
  for (const auto format : {cuda::KvFormat::kBf16, cuda::KvFormat::kFp8}) {
    SCOPED_TRACE(format == cuda::KvFormat::kFp8 ? "fp8" : "bf16");
    ForEachSchedule(4, [&] { problem.Run(format); });
  }
}

TEST(RopeAppendTest, RowsOfMixedStrategiesAndLeads) {
  ExpectMatches({.rows = {{.position = 0},
                          {.position = 15, .strategy = 1},
                          {.position = 16, .leads = false},
                          {.position = 333, .strategy = 1, .leads = false},
                          {.position = 500}}});
}

TEST(RopeAppendTest, KeysAndValuesApart) {
  ExpectMatches({.rows = {{.position = 3, .leads = false},
                          {.position = 15, .strategy = 1},
                          {.position = -1},
                          {.position = 333, .leads = false},
                          {.position = 500}},
                 .is_apart = true});
}

// In the middle of a page, and into the next one.
TEST(RopeAppendTest, RowsOfOneSequence) {
  for (int page_tokens : {4, 16}) {
    SCOPED_TRACE(page_tokens);
    AppendShape shape = {.head_dim = 32, .page_tokens = page_tokens};
    for (int i = 0; i < 21; ++i) {
      shape.rows.push_back({.position = 13 + i, .continues = i > 0});
    }
    ExpectMatches(shape);
  }
}

// Of which some do not fit an f32 once they are divided by the scale.
TEST(RopeAppendTest, NumbersOfAllSizes) {
  for (float v : {0.0f, 1e-38f, -1e-30f, 448.0f, -449.0f, 1e30f}) {
    SCOPED_TRACE(v);
    ExpectMatches(
        {.head_dim = 32, .k_norm = false, .rows = {{.position = 3}}, .all = v});
  }
}

// One that dwarfs the others of its head, or that is none.
TEST(RopeAppendTest, AnOutlierAndWhatIsNotFinite) {
  const AppendProblem outlier(
      {.rows = {{.position = 3}, {.position = 9}}, .one = 3e3});
  outlier.Run(cuda::KvFormat::kFp8);
  for (float v : {INFINITY, -INFINITY, NAN}) {
    const AppendProblem problem(
        {.rows = {{.position = 3}, {.position = 9}}, .one = v});
    problem.Run(cuda::KvFormat::kFp8);
  }
}

TEST(RopeAppendTest, EveryHeadDim) {
  for (int head_dim : {16, 32, 48, 64, 80, 96, 128, 240, 256}) {
    SCOPED_TRACE(head_dim);
    ExpectMatches({.head_dim = head_dim,
                   .q_heads = 3,
                   .kv_heads = 1,
                   .rows = {{.position = 37}, {.position = 5}}});
  }
}

// The smallest with one head: fp8 pads it.
TEST(RopeAppendTest, EveryPageSize) {
  for (int page_tokens : {4, 8, 32, 64, 128}) {
    SCOPED_TRACE(page_tokens);
    ExpectMatches({.head_dim = 16,
                   .kv_heads = page_tokens == 4 ? 1 : 2,
                   .page_tokens = page_tokens,
                   .rows = {{.position = 127}, {.position = 128}}});
  }
}

TEST(RopeAppendTest, WithoutNorms) {
  for (int norms = 0; norms < 3; ++norms) {
    SCOPED_TRACE(norms);
    ExpectMatches({.q_norm = norms == 1,
                   .k_norm = norms == 2,
                   .rows = {{.position = 100}}});
  }
}

TEST(RopeAppendTest, FarPositions) {
  ExpectMatches({.page_tokens = 128, .rows = {{.position = 5000}}});
}

TEST(RopeAppendTest, PaddingRowsWriteNothing) {
  ExpectMatches({.rows = {{.position = -1},
                          {.position = 7},
                          {.position = -1, .strategy = 1}}});
}

TEST(RopeAppendTest, NoRowsIsNoLaunch) {
  cuda::RopeAppendArgs args;
  args.pages = {.kv_heads = 1, .page_tokens = 16, .head_dim = 64};
  EXPECT_EQ(cuda::RopeAppend(args, nullptr), cudaSuccess);
}

TEST(RopeAppendTest, RefusesOtherHeadDims) {
  cuda::RopeAppendArgs args;
  for (int head_dim : {8, 72, 272}) {
    args.pages.head_dim = head_dim;
    EXPECT_EQ(cuda::RopeAppend(args, nullptr), cudaErrorInvalidValue);
  }
}

}  // namespace
}  // namespace strata
