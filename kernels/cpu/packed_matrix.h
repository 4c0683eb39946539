#ifndef KERNELS_CPU_PACKED_MATRIX_H_
#define KERNELS_CPU_PACKED_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cpu/weight_arena.h"
#include "kernels/cpu/worker.h"
#include "kernels/dtype.h"
#include "kernels/ops.h"

namespace strata::cpu {

// Outputs of a tile.
inline constexpr int kTile = 32;

// Bytes that a tile of `type` takes for all of `cols` inputs.
int64_t TileBytes(DType type, int64_t cols);

// Bytes of a PackedMatrix of the view.
int64_t PackedBytes(const WeightView& view);

// Weights in tiles of kTile outputs, the bits of an element as in the file.
// Outputs are the lanes of vectors, so one row of activations reads a tile from
// its first byte to its last, and many rows share what is in registers.  A tile
// holds, for o in [0, kTile) and the last tile filled up with zeros:
//
//   F32, F16  [cols][o]
//   BF16      [cols / 2][o][2]; an odd last column is paired with zero
//   Q8_0      blocks of {f16 d[o]; uint8 u[8][o][4]}, u = q + 128:
//             input 4 i + j at [i][o][j]
//   Q4_0      blocks of {f16 d[o]; uint8 u[4][o][4]}:
//             input 4 i + j is a low nibble, 16 + 4 i + j the high one
//   Q4_1      the same with f16 m[o] after d
//
// Constant after it is packed.
class PackedMatrix final : public Matrix {
 public:
  // The memory for `view`, zeroed; Fill packs it.
  PackedMatrix(const WeightView& view, WeightArena& arena);

  // Packs this worker's tiles of the view given to the constructor.
  void Fill(const WeightView& view, const Worker& worker);

  int64_t rows() const override { return rows_; }
  int64_t cols() const override { return cols_; }
  int64_t num_bytes() const override { return num_tiles() * tile_bytes_; }
  DType type() const { return type_; }

  int64_t num_tiles() const { return (rows_ + kTile - 1) / kTile; }
  const std::byte* tile(int64_t i) const {
    return data_.get() + i * tile_bytes_;
  }

 private:
  DType type_;
  int64_t rows_;
  int64_t cols_;
  int64_t tile_bytes_;
  std::shared_ptr<std::byte> data_;
};

}  // namespace strata::cpu

#endif  // KERNELS_CPU_PACKED_MATRIX_H_
