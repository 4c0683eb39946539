#ifndef KERNELS_CPU_BF16_IN_12_H_
#define KERNELS_CPU_BF16_IN_12_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cpu/tile_format.h"

// BF16 weights in 12 bits each, exactly.
//
// The upper byte of a BF16 number, its sign and exponent but for the last bit,
// takes few values among the weights of a matrix.  So a tile keeps the lower
// bytes, and of each upper byte the place in a table of the tile's 15 most
// frequent ones.  Weights with another upper byte are zero in the tile and
// listed beside it: of a normal distribution one in 3,000 to 9,000, of a
// Laplace one in 1,000 to 2,500.  That the exponents of models take 2 to 3
// bits: DFloat11, arXiv 2504.11651.
//
// A tile of [cols / 2] steps, each two inputs of kTile outputs:
//
//   uint8 upper[16], the first 0; zeros up to a cache line
//   steps of {uint8 lower[64]; uint8 codes[32]}
//
// The bytes of a step's [kTile][2] weights lie in places that suit unpacking
// within lanes of 16 bytes, see PlaceIn12; the code of place p is the low
// nibble of codes[p] for p < 32, the high one of codes[p - 32] for others.
namespace strata::cpu {

inline constexpr int kIn12TableBytes = 64;
inline constexpr int kIn12StepWeights = 2 * kTile;
inline constexpr int kIn12LowerBytes = kIn12StepWeights;
inline constexpr int kIn12StepBytes = 3 * kTile;

// Where a step has the i-th byte of [kTile][2]: of each four runs of 8 bytes
// the middle two change places.
constexpr int PlaceIn12(int i) {
  const int run = i / 8 % 4;
  return run == 1 ? i + 8 : run == 2 ? i - 8 : i;
}

constexpr int64_t In12TileBytes(int64_t cols) {
  const int64_t bytes = kIn12TableBytes + (cols + 1) / 2 * kIn12StepBytes;
  return (bytes + 63) / 64 * 64;
}

// A weight that its tile has as zero.  (So an infinite activation makes NaN of
// it, where the weight itself would have given infinity.)
struct LeftOut {
  int32_t input;
  int32_t output;  // of the tile
  float weight;
};

// Writes a tile of BF16 [ceil(cols / 2)][kTile][2] in 12 bits; returns what it
// leaves out, by rising input and output, or nothing if that is more than
// `max_left_out`.
std::optional<std::vector<LeftOut>> PackIn12(const std::byte* bf16_tile,
                                             int64_t cols, int64_t max_left_out,
                                             std::byte* tile);

// How many weights PackIn12 would leave out.
int64_t CountLeftOut(const std::byte* bf16_tile, int64_t cols);

}  // namespace strata::cpu

#endif  // KERNELS_CPU_BF16_IN_12_H_
