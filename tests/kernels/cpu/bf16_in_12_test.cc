#include "kernels/cpu/bf16_in_12.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "kernels/bf16.h"

namespace strata::cpu {
namespace {

// [ceil(cols / 2)][kTile][2], as bits.
using Bf16Tile = std::vector<uint16_t>;

Bf16Tile NewTile(int64_t cols) { return Bf16Tile((cols + 1) / 2 * 2 * kTile); }

struct Packed {
  std::vector<std::byte> tile;
  std::vector<LeftOut> left_out;
};

Packed Pack(const Bf16Tile& bf16, int64_t cols) {
  Packed packed;
  packed.tile.assign(In12TileBytes(cols), std::byte{0xff});
  const auto left_out =
      PackIn12(reinterpret_cast<const std::byte*>(bf16.data()), cols,
               std::numeric_limits<int64_t>::max(), packed.tile.data());
  EXPECT_TRUE(left_out.has_value());
  packed.left_out = *left_out;
  return packed;
}

// By the definition of the format.
Bf16Tile Unpack(const Packed& packed, int64_t cols) {
  Bf16Tile bf16 = NewTile(cols);
  const auto at = [&](int64_t i) {
    return static_cast<uint16_t>(packed.tile[i]);
  };
  for (size_t i = 0; i < bf16.size(); ++i) {
    const int64_t step = kIn12TableBytes + i / 64 * kIn12StepBytes;
    const int place = PlaceIn12(i % 64);
    const int codes = at(step + 64 + place % 32);
    bf16[i] = at(step + place) | at(place < 32 ? codes & 15 : codes >> 4) << 8;
  }
  std::vector<std::pair<int, int>> rising;
  for (const LeftOut& w : packed.left_out) {
    uint16_t& bits = bf16[w.input / 2 * 64 + w.output * 2 + w.input % 2];
    EXPECT_EQ(bits, 0) << "left out and there";
    if (!rising.empty()) {
      EXPECT_LT(rising.back(), std::pair(w.input, w.output));
    }
    rising.emplace_back(w.input, w.output);
    bits = std::bit_cast<uint32_t>(w.weight) >> 16;
  }
  return bf16;
}

Bf16Tile RandomTile(int64_t cols, int max_exponent, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  Bf16Tile tile = NewTile(cols);
  for (uint16_t& bits : tile) {
    const int exponent =
        max_exponent == 0 ? 0 : static_cast<int>(random() % max_exponent);
    bits = static_cast<uint16_t>(ToBf16(std::ldexp(normal(random), -exponent)));
  }
  return tile;
}

int64_t NumLeftOut(const Bf16Tile& tile, int64_t cols) {
  return CountLeftOut(reinterpret_cast<const std::byte*>(tile.data()), cols);
}

TEST(Bf16In12Test, EveryBitIsThereAgain) {
  std::mt19937_64 random(20261130);
  for (const int64_t cols : {1, 2, 3, 32, 577}) {
    for (const int max_exponent : {0, 20, 100}) {
      const Bf16Tile tile = RandomTile(cols, max_exponent, random);
      const Packed packed = Pack(tile, cols);
      EXPECT_EQ(Unpack(packed, cols), tile) << cols << ", " << max_exponent;
      EXPECT_EQ(std::ssize(packed.left_out), NumLeftOut(tile, cols));
    }
  }
}

TEST(Bf16In12Test, AllBitPatternsAreThereAgain) {
  constexpr int64_t kCols = 65536 / kTile;
  Bf16Tile tile = NewTile(kCols);
  for (size_t i = 0; i < tile.size(); ++i) tile[i] = static_cast<uint16_t>(i);
  const Packed packed = Pack(tile, kCols);
  EXPECT_EQ(Unpack(packed, kCols), tile);
  EXPECT_EQ(std::ssize(packed.left_out), (256 - 16) * 256);
}

TEST(Bf16In12Test, LeavesFewOfANormalDistributionOut) {
  constexpr int64_t kCols = 4096;
  std::mt19937_64 random(1);
  const Bf16Tile tile = RandomTile(kCols, 0, random);
  EXPECT_LT(NumLeftOut(tile, kCols) * 2000, std::ssize(tile));
}

TEST(Bf16In12Test, NoTileWhereMoreWouldBeLeftOut) {
  constexpr int64_t kCols = 64;
  std::mt19937_64 random(2);
  const Bf16Tile tile = RandomTile(kCols, 100, random);
  const auto* bytes = reinterpret_cast<const std::byte*>(tile.data());
  const int64_t left_out = NumLeftOut(tile, kCols);
  ASSERT_GT(left_out, 100);
  std::vector<std::byte> out(In12TileBytes(kCols));
  EXPECT_TRUE(PackIn12(bytes, kCols, left_out, out.data()).has_value());
  EXPECT_FALSE(PackIn12(bytes, kCols, left_out - 1, out.data()).has_value());
}

TEST(Bf16In12Test, ATileIsThreeQuartersOfBf16) {
  EXPECT_EQ(In12TileBytes(4096), 64 + 4096 * kTile * 3 / 2);
  EXPECT_EQ(In12TileBytes(1) % 64, 0);
}

}  // namespace
}  // namespace strata::cpu
