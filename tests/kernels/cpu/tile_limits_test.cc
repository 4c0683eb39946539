// Tile kernels where their numbers and their memory end.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/tile_kernels.h"
#include "tests/kernels/cpu/packed.h"
#include "tests/kernels/cpu/weights.h"

namespace strata::cpu {
namespace {

std::vector<Isa> AllIsas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (isa <= DetectIsa()) isas.push_back(isa);
  }
  return isas;
}

std::vector<float> Product(Isa isa, const PackedMatrix& w,
                           const std::vector<float>& x, int rows) {
  std::vector<float> y(rows * w.rows(), NAN);
  const MatmulOutput output = {.w = &w, .y = y.data()};
  Matmul matmul(isa, /*exact_f32=*/false, 1);
  matmul.Reserve(rows, w.cols());
  matmul.Run({.x = x.data(), .cols = w.cols(), .num_rows = rows}, {&output, 1},
             Worker{});
  return y;
}

// The largest weights and activations of either sign: sums of 16 bits are next
// to what they can hold.
TEST(TileLimitsTest, SumsOfInt8AreExact) {
  constexpr int kInputs = 96;
  const uint16_t kOne = 0x3c00;
  std::mt19937_64 random(1);
  for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
    for (const int byte : {0x00, 0xff, 0x80, 0x7f}) {
      TestWeights w(type, 33, kInputs, random);
      std::memset(w.bytes.data(), byte, w.bytes.size());
      for (size_t at = 0; at < w.bytes.size(); at += BlockBytes(type)) {
        std::memcpy(w.bytes.data() + at, &kOne, 2);
        if (type == DType::kQ4_1)
          std::memcpy(w.bytes.data() + at + 2, &kOne, 2);
      }
      const auto packed = Packed(w.view);
      // Signs of 4 inputs in turn, as bits: the row's number.
      std::vector<float> x(16 * kInputs);
      std::vector<float> want(16);
      for (int i = 0; i < 16 * kInputs; ++i) {
        x[i] = i / kInputs >> i % 4 & 1 ? -127.0f : 127.0f;
        want[i / kInputs] += static_cast<float>(w.At(0, i % kInputs)) * x[i];
      }
      for (const Isa isa : AllIsas()) {
        for (int rows = 1; rows <= 16; ++rows) {
          const std::vector<float> y = Product(isa, *packed, x, rows);
          for (int i = 0; i < rows * 33; ++i) {
            ASSERT_EQ(y[i], want[i / 33])
                << IsaName(isa) << " " << DTypeName(type) << ", bytes " << byte
                << ", row " << i / 33 << " of " << rows;
          }
        }
      }
    }
  }
}

TEST(TileLimitsTest, BlocksOfWhatIsNotFiniteAreNaN) {
  constexpr int kInputs = 96;
  std::mt19937_64 random(2);
  for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
    const TestWeights w(type, 33, kInputs, random);
    const auto packed = Packed(w.view);
    for (const float bad : {std::numeric_limits<float>::infinity(), NAN}) {
      std::vector<float> x = RandomFloats(7 * kInputs, random);
      // In several lanes of a vector.
      for (int i = 0; i < 5; ++i) x[4 * kInputs + 32 + i] = bad;
      for (const Isa isa : AllIsas()) {
        const std::vector<float> y = Product(isa, *packed, x, 7);
        for (int i = 0; i < 7 * 33; ++i) {
          ASSERT_EQ(std::isnan(y[i]), i / 33 == 4) << IsaName(isa) << " " << i;
        }
      }
    }
  }
}

// Tiles that decide for 12 bits are a sample: the others may hold anything.
TEST(TileLimitsTest, TilesBesideTheSampleMayNotSuit12Bits) {
  constexpr int kOutputs = 8 * kTile, kInputs = 97, kRows = 40;
  std::mt19937_64 random(3);
  TestWeights w(DType::kBF16, kOutputs, kInputs, random);
  auto* values = reinterpret_cast<Bf16*>(w.bytes.data());
  for (int i = 0; i < kOutputs * kInputs; ++i) {
    if (i / (kTile * kInputs) % 2 == 0) continue;
    values[i] = ToBf16(
        std::ldexp(ToFloat(values[i]), static_cast<int>(random() % 160) - 80));
  }
  const auto packed = Packed(w.view);
  ASSERT_EQ(packed->format(), TileFormat::kBF16In12);
  ASSERT_EQ(packed->format(0), TileFormat::kBF16In12);
  ASSERT_EQ(packed->format(1), TileFormat::kBF16);
  EXPECT_TRUE(packed->left_out(1).empty());
  std::vector<float> x = RandomFloats(kRows * kInputs, random);
  for (float& v : x) v = ToFloat(ToBf16(v));
  for (const Isa isa : AllIsas()) {
    const std::vector<float> all = Product(isa, *packed, x, kRows);
    for (int r = 0; r < kRows; ++r) {
      const std::vector<float> one =
          Product(isa, *packed,
                  {x.begin() + r * kInputs, x.begin() + (r + 1) * kInputs}, 1);
      for (int o = 0; o < kOutputs; ++o) {
        const float got = all[r * kOutputs + o];
        double want = 0, size = 0;
        for (int c = 0; c < kInputs; ++c) {
          const double term = w.At(o, c) * x[r * kInputs + c];
          want += term;
          size += std::abs(term);
        }
        ASSERT_EQ(got, one[o]) << IsaName(isa) << ", row " << r << ", " << o;
        ASSERT_LE(std::abs(got - want), size * 0x1p-24 * (kInputs + 4))
            << IsaName(isa) << ", row " << r << ", " << o;
      }
    }
  }
}

// Tiles, rows and sums in memory of just their size, for a sanitizer to see: a
// WeightArena hides what is read beyond.
TEST(TileLimitsTest, StaysWithinItsMemory) {
  std::mt19937_64 random(4);
  for (const Isa isa : AllIsas()) {
    const TileKernels& kernels = TileKernelsFor(isa);
    for (int format = 0; format < kTileFormats; ++format) {
      const bool in_12 = format == static_cast<int>(TileFormat::kBF16In12);
      const DType type = in_12 ? DType::kBF16 : static_cast<DType>(format);
      for (const int cols : {1, 2, 33, 64, 96, 224, 385, 800}) {
        if (cols % BlockElements(type) != 0) continue;
        const TestWeights w(type, kTile, cols, random);
        const auto packed = Packed(w.view);
        if (in_12 && packed->format() != TileFormat::kBF16In12) continue;
        // Without what makes it whole cache lines.
        const int64_t bytes =
            in_12 ? kIn12TableBytes + (cols + 1) / 2 * kIn12StepBytes
                  : TileBytes(static_cast<TileFormat>(format), cols);
        std::vector<std::byte> tile(bytes);
        if (in_12 || type != DType::kBF16) {
          std::memcpy(tile.data(), packed->tile(0), bytes);
        }
        for (const TileProduct& product :
             {kernels.fast[format], kernels.exact[format]}) {
          const int64_t stride = PackedRowStride(product.row_type, cols);
          for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 31, 33}) {
            std::vector<std::byte> x(rows * stride);
            std::vector<float> sums(rows * kTile, NAN);
            for (int r = 0; r < rows; ++r) {
              kernels.pack[static_cast<int>(product.row_type)](
                  RandomFloats(cols, random).data(), cols,
                  x.data() + r * stride);
            }
            product.run({.tile = tile.data(),
                         .rows = {x.data(), stride, cols},
                         .num_rows = rows,
                         .sums = sums.data()});
            for (const float sum : sums) ASSERT_TRUE(std::isfinite(sum));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace strata::cpu
