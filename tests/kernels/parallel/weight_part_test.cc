#include "kernels/parallel/weight_part.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/cpu/dequantize.h"
#include "tests/kernels/cpu/weights.h"

namespace strata {
namespace {

// The numbers that a view means.
std::vector<std::vector<float>> ValuesOf(const WeightView& view) {
  std::vector<std::vector<float>> values(view.rows,
                                         std::vector<float>(view.cols));
  for (int64_t row = 0; row < view.rows; ++row) {
    cpu::DequantizeRow(view, row, values[row].data());
  }
  return values;
}

TEST(RangeOfRankTest, CoversAllInWholeUnitsOfWhichNoRankHasMuchMore) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const int num_ranks = 1 + static_cast<int>(random() % 8);
    const int unit = 1 + static_cast<int>(random() % 100);
    const int64_t count = 1 + static_cast<int64_t>(random() % 5000);
    const int64_t units = (count + unit - 1) / unit;
    int64_t end = 0;
    for (int rank = 0; rank < num_ranks; ++rank) {
      const Range range = RangeOfRank(count, unit, rank, num_ranks);
      EXPECT_EQ(range.begin, end);
      end = range.end;
      EXPECT_TRUE(end % unit == 0 || end == count);
      const int64_t of_rank = (end - range.begin + unit - 1) / unit;
      EXPECT_GE(of_rank, units / num_ranks);
      EXPECT_LE(of_rank, units / num_ranks + 1);
    }
    EXPECT_EQ(end, count);
  }
}

TEST(WeightPartTest, PartsTogetherAreTheWhole) {
  constexpr int kRows = 80, kCols = 160, kUnit = 32, kRanks = 2;
  std::mt19937_64 random(2);
  for (const DType type : kAllDTypes) {
    const TestWeights weights(type, kRows, kCols, random);
    const auto want = ValuesOf(weights.view);
    for (const Split split : {Split::kWhole, Split::kOutputs, Split::kInputs}) {
      SCOPED_TRACE(testing::Message()
                   << DTypeName(type) << ", split " << static_cast<int>(split));
      WeightView view = weights.view;
      view.split = split;
      view.split_unit = kUnit;
      for (int rank = 0; rank < kRanks; ++rank) {
        const WeightPart part(view, rank, kRanks);
        EXPECT_EQ(part.view().split, Split::kWhole);
        Range rows = {0, kRows}, cols = {0, kCols};
        if (split == Split::kOutputs) {
          rows = RangeOfRank(kRows, kUnit, rank, kRanks);
        } else if (split == Split::kInputs) {
          cols = RangeOfRank(kCols, kUnit, rank, kRanks);
        }
        const auto got = ValuesOf(part.view());
        ASSERT_EQ(static_cast<int64_t>(got.size()), rows.end - rows.begin);
        for (int64_t row = rows.begin; row < rows.end; ++row) {
          EXPECT_EQ(got[row - rows.begin],
                    std::vector<float>(want[row].begin() + cols.begin,
                                       want[row].begin() + cols.end));
        }
      }
    }
  }
}

// A bias: a vector, or a column where heads are interleaved.
TEST(WeightPartTest, OutputsOfAVectorAreItsElements) {
  constexpr int kHeadDim = 6, kSize = 4 * kHeadDim;
  std::mt19937_64 random(3);
  for (const bool is_interleaved : {false, true}) {
    const TestWeights weights =
        is_interleaved ? TestWeights(DType::kF16, kSize, 1, random, kHeadDim)
                       : TestWeights(DType::kF16, 1, kSize, random);
    WeightView view = weights.view;
    view.split = Split::kOutputs;
    view.split_unit = 2 * kHeadDim;
    for (int rank = 0; rank < 2; ++rank) {
      const WeightPart part(view, rank, 2);
      ASSERT_EQ(part.view().rows * part.view().cols, kSize / 2);
      const auto got = ValuesOf(part.view());
      for (int i = 0; i < kSize / 2; ++i) {
        const int of_whole = rank * kSize / 2 + i;
        EXPECT_EQ(is_interleaved ? got[i][0] : got[0][i],
                  static_cast<float>(is_interleaved ? weights.At(of_whole, 0)
                                                    : weights.At(0, of_whole)));
      }
    }
  }
}

// The rows of Q of a GGUF llama, whose heads are stored in another order.
TEST(WeightPartTest, InterleavedHeadsStayTogether) {
  constexpr int kHeadDim = 8, kRows = 6 * kHeadDim, kCols = 64;
  std::mt19937_64 random(4);
  const TestWeights weights(DType::kQ8_0, kRows, kCols, random, kHeadDim);
  WeightView view = weights.view;
  view.split = Split::kOutputs;
  view.split_unit = 2 * kHeadDim;
  for (int rank = 0; rank < 3; ++rank) {
    const WeightPart part(view, rank, 3);
    const auto got = ValuesOf(part.view());
    ASSERT_EQ(got.size(), size_t{2 * kHeadDim});
    for (int row = 0; row < 2 * kHeadDim; ++row) {
      for (int col = 0; col < kCols; ++col) {
        EXPECT_EQ(got[row][col], static_cast<float>(weights.At(
                                     rank * 2 * kHeadDim + row, col)));
      }
    }
  }
}

}  // namespace
}  // namespace strata
