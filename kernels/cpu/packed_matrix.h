#ifndef KERNELS_CPU_PACKED_MATRIX_H_
#define KERNELS_CPU_PACKED_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/aligned_buffer.h"
#include "kernels/cpu/bf16_in_12.h"
#include "kernels/cpu/tile_format.h"
#include "kernels/cpu/weight_arena.h"
#include "kernels/cpu/worker.h"
#include "kernels/dtype.h"
#include "kernels/ops.h"

namespace strata::cpu {

// Bytes that a tile of `format` takes for all of `cols` inputs.
int64_t TileBytes(TileFormat format, int64_t cols);

// Bytes of a PackedMatrix of such a view.  BF16 counts as 12 bits a weight
// where view.data is null; else it is looked at as the constructor does.
int64_t PackedBytes(const WeightView& view);

// Weights in tiles of kTile outputs, the bits of an element as in the file.
// Outputs are the lanes of vectors, so one row of activations reads a tile from
// its first byte to its last, and many rows share what is in registers.  A tile
// holds, for o in [0, kTile) and the last tile filled up with zeros:
//
//   F32, F16  [cols][o]
//   BF16      [cols / 2][o][2]; an odd last column is paired with zero.
//             In memory in 12 bits (bf16_in_12.h): what a row of activations
//             reads is a quarter less.  In 16 where a sample says that of more
//             than 512 weights one would be left out, and beside the others
//             such a tile as has more than one of 64.
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
  // REQUIRES: view.data is there, of BF16.
  PackedMatrix(const WeightView& view, WeightArena& arena);

  // Packs this worker's tiles of the view given to the constructor.
  void Fill(const WeightView& view, const Worker& worker);

  int64_t rows() const override { return rows_; }
  int64_t cols() const override { return cols_; }
  int64_t num_bytes() const override { return num_tiles() * tile_bytes_; }
  TileFormat format() const { return format_; }  // of its tiles, most of them

  int64_t num_tiles() const { return (rows_ + kTile - 1) / kTile; }
  TileFormat format(int64_t i) const {
    return IsWide(i) ? TileFormat::kBF16 : format_;
  }
  const std::byte* tile(int64_t i) const {
    return IsWide(i) ? in_12_[i].wide.data() : data_.get() + i * tile_bytes_;
  }
  // Weights that tile `i` has as zero.
  std::span<const LeftOut> left_out(int64_t i) const {
    if (format_ != TileFormat::kBF16In12) return {};
    return in_12_[i].left_out;
  }

 private:
  // Beside a tile in 12 bits.
  struct In12 {
    std::vector<LeftOut> left_out;
    AlignedBuffer wide;  // the tile in 16 bits instead, or empty
  };

  bool IsWide(int64_t i) const {
    return format_ == TileFormat::kBF16In12 && in_12_[i].wide.size() > 0;
  }

  TileFormat format_;
  int64_t rows_;
  int64_t cols_;
  int64_t tile_bytes_;
  std::shared_ptr<std::byte> data_;
  std::vector<In12> in_12_;  // by tile, of kBF16In12
};

}  // namespace strata::cpu

#endif  // KERNELS_CPU_PACKED_MATRIX_H_
