#ifndef KERNELS_CPU_TILE_FORMAT_H_
#define KERNELS_CPU_TILE_FORMAT_H_

#include <cstdint>

#include "kernels/dtype.h"

namespace strata::cpu {

// Outputs of a tile.
inline constexpr int kTile = 32;

// How a tile holds weights: as their DType, with the same value, or otherwise.
enum class TileFormat : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kBF16In12,  // BF16 where kernels/cpu/bf16_in_12.h can have it
};

inline constexpr int kTileFormats = 7;

constexpr TileFormat PlainFormat(DType type) {
  return static_cast<TileFormat>(type);
}
static_assert(PlainFormat(DType::kBF16) == TileFormat::kBF16 &&
              PlainFormat(DType::kQ4_1) == TileFormat::kQ4_1);

}  // namespace strata::cpu

#endif  // KERNELS_CPU_TILE_FORMAT_H_
