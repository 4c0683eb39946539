// The operations on whole rows: Embed, Gather, NormalizeRow.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/embed.h"
#include "kernels/cpu/gather.h"
#include "kernels/cpu/rms_norm.h"
#include "kernels/cpu/thread_team.h"
#include "tests/testing/near.h"

namespace strata::cpu {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> RandomFloats(int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(count);
  for (float& value : x) value = normal(random);
  return x;
}

TEST(EmbedTest, RowsOfTheTable) {
  const int vocab = 33, dim = 31;
  const std::vector<float> table = RandomFloats(vocab * dim, 1);
  const std::vector<int32_t> tokens = {32, 0, 5, 5, 31, 1, 32};
  for (const int workers : {1, 2, 3}) {
    std::vector<float> x(tokens.size() * dim, kNan);
    const EmbedArgs args = {
        .table = {.data = reinterpret_cast<const std::byte*>(table.data()),
                  .type = DType::kF32,
                  .rows = vocab,
                  .cols = dim},
        .tokens = tokens,
        .x = x.data()};
    ThreadTeam(workers).Run([&](const Worker& worker) { Embed(args, worker); });
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(x[i], table[tokens[i / dim] * dim + i % dim]);
    }
  }
}

TEST(GatherTest, RowsByNumber) {
  const int dim = 31;
  const std::vector<float> x = RandomFloats(33 * dim, 2);
  const std::vector<int32_t> row_ids = {3, 32, 3, 0, 17};
  for (const int workers : {1, 2, 3}) {
    std::vector<float> y(row_ids.size() * dim, kNan);
    const GatherArgs args = {
        .x = x.data(), .row_ids = row_ids, .dim = dim, .y = y.data()};
    ThreadTeam(workers).Run(
        [&](const Worker& worker) { Gather(args, worker); });
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(y[i], x[row_ids[i / dim] * dim + i % dim]);
  }
}

TEST(NormalizeRowTest, IsTheFormula) {
  for (const int dim : {1, 2, 15, 16, 17, 33, 257, 576}) {
    const std::vector<float> x = RandomFloats(dim, dim),
                             weight = RandomFloats(dim, dim + 1);
    // As large as the mean of x squared, so that losing it fails.
    const float eps = 0.7f;
    double squares = 0.0;
    for (const float value : x) squares += double{value} * value;
    std::vector<float> want, y(dim, kNan), in_place = x;
    for (int c = 0; c < dim; ++c)
      want.push_back(x[c] / std::sqrt(squares / dim + eps) * weight[c]);
    NormalizeRow(x.data(), {weight.data(), eps}, dim, y.data());
    EXPECT_TRUE(AllNear(y, want, 1e-7f, 1e-6f)) << dim;
    NormalizeRow(in_place.data(), {weight.data(), eps}, dim, in_place.data());
    EXPECT_EQ(in_place, y);
  }
}

TEST(NormalizeRowTest, CopiesWithoutWeight) {
  const std::vector<float> x = RandomFloats(33, 3);
  std::vector<float> y(33, kNan);
  NormalizeRow(x.data(), {}, 33, y.data());
  EXPECT_EQ(y, x);
  NormalizeRow(y.data(), {}, 33, y.data());
  EXPECT_EQ(y, x);
}

}  // namespace
}  // namespace strata::cpu
