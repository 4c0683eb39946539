#include "kernels/cpu/packed_matrix.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"

namespace strata::cpu {

namespace {

// Copies elements of Word from row to row o of a tile of [words][kTile].
template <class Word>
void FillColumn(const std::byte* row, int64_t words, int o, std::byte* tile) {
  for (int64_t i = 0; i < words; ++i) {
    std::memcpy(tile + (i * kTile + o) * sizeof(Word), row + i * sizeof(Word),
                sizeof(Word));
  }
}

// One column of a block: `num_halves` f16 (d, or d and m), then words of 4 or 8
// inputs, which a tile keeps as they are but for the bits of `flip`.
void FillBlock(const std::byte* block, int num_halves, int num_words,
               uint32_t flip, int o, std::byte* tile) {
  for (int i = 0; i < num_halves; ++i) {
    std::memcpy(tile + (i * kTile + o) * 2, block + i * 2, 2);
  }
  block += num_halves * 2;
  tile += num_halves * kTile * 2;
  for (int i = 0; i < num_words; ++i) {
    uint32_t word;
    std::memcpy(&word, block + i * 4, 4);
    word ^= flip;
    std::memcpy(tile + (i * kTile + o) * 4, &word, 4);
  }
}

void FillRow(const std::byte* row, DType type, int64_t cols, int o,
             std::byte* tile) {
  switch (type) {
    case DType::kF32:
      return FillColumn<uint32_t>(row, cols, o, tile);
    case DType::kF16:
      return FillColumn<uint16_t>(row, cols, o, tile);
    case DType::kBF16: {
      FillColumn<uint32_t>(row, cols / 2, o, tile);
      if (cols % 2 != 0) {
        std::memcpy(tile + (cols / 2 * kTile + o) * 4, row + (cols - 1) * 2, 2);
      }
      return;
    }
    case DType::kQ8_0:
    case DType::kQ4_0:
    case DType::kQ4_1: {
      const int bytes = BlockBytes(type);
      for (int64_t b = 0; b < cols / BlockElements(type); ++b) {
        FillBlock(row + b * bytes, type == DType::kQ4_1 ? 2 : 1,
                  type == DType::kQ8_0 ? 8 : 4,
                  type == DType::kQ8_0 ? 0x80808080u : 0, o,
                  tile + b * bytes * kTile);
      }
      return;
    }
  }
}

// Writes tile `t` of the view in its plain format; outputs that are not there
// stay as they are.
void FillTile(const WeightView& view, int64_t t, std::byte* tile) {
  for (int o = 0; o < kTile && t * kTile + o < view.rows; ++o) {
    FillRow(view.data + view.StoredRow(t * kTile + o) * view.RowBytes(),
            view.type, view.cols, o, tile);
  }
}

// One of so many weights may be left out of a matrix, or a tile, in 12 bits.
constexpr int64_t kWeightsPerLeftOut = 512, kTileWeightsPerLeftOut = 64;

// Whether 12 bits suit the weights, by some of the tiles.
bool FitsIn12(const WeightView& view) {
  constexpr int64_t kTiles = 4;
  const int64_t num_tiles = (view.rows + kTile - 1) / kTile;
  const int64_t num_samples = std::min(kTiles, num_tiles);
  int64_t left_out = 0, num_weights = 0;
  for (int64_t i = 0; i < num_samples; ++i) {
    std::vector<std::byte> tile(TileBytes(TileFormat::kBF16, view.cols));
    const int64_t t = i * num_tiles / num_samples;
    FillTile(view, t, tile.data());
    left_out += CountLeftOut(tile.data(), view.cols);
    num_weights += std::min<int64_t>(kTile, view.rows - t * kTile) * view.cols;
  }
  return left_out * kWeightsPerLeftOut <= num_weights;
}

TileFormat FormatOf(const WeightView& view) {
  if (view.type != DType::kBF16) return PlainFormat(view.type);
  return view.data == nullptr || FitsIn12(view) ? TileFormat::kBF16In12
                                                : TileFormat::kBF16;
}

}  // namespace

int64_t TileBytes(TileFormat format, int64_t cols) {
  if (format == TileFormat::kBF16In12) return In12TileBytes(cols);
  const auto type = static_cast<DType>(format);
  if (type == DType::kBF16) cols += cols % 2;
  return cols / BlockElements(type) * BlockBytes(type) * kTile;
}

int64_t PackedBytes(const WeightView& view) {
  const int64_t num_tiles = (view.rows + kTile - 1) / kTile;
  return num_tiles * TileBytes(FormatOf(view), view.cols);
}

PackedMatrix::PackedMatrix(const WeightView& view, WeightArena& arena)
    : format_(FormatOf(view)),
      rows_(view.rows),
      cols_(view.cols),
      tile_bytes_(TileBytes(format_, view.cols)),
      data_(arena.Allocate(num_tiles() * tile_bytes_)) {
  STRATA_CHECK(cols_ % BlockElements(view.type) == 0);
  if (format_ == TileFormat::kBF16In12) in_12_.resize(num_tiles());
}

void PackedMatrix::Fill(const WeightView& view, const Worker& worker) {
  const Share tiles = worker.ShareOf(num_tiles());
  if (format_ != TileFormat::kBF16In12) {
    for (int64_t t = tiles.begin; t < tiles.end; ++t) {
      FillTile(view, t, data_.get() + t * tile_bytes_);
    }
    return;
  }
  const int64_t bf16_bytes = TileBytes(TileFormat::kBF16, cols_);
  const int64_t max_left_out = kTile * cols_ / kTileWeightsPerLeftOut;
  AlignedBuffer bf16_tile(bf16_bytes);
  for (int64_t t = tiles.begin; t < tiles.end; ++t) {
    std::memset(bf16_tile.data(), 0, bf16_bytes);
    FillTile(view, t, bf16_tile.data());
    auto left_out = PackIn12(bf16_tile.data(), cols_, max_left_out,
                             data_.get() + t * tile_bytes_);
    if (left_out.has_value()) {
      in_12_[t].left_out = *std::move(left_out);
    } else {
      in_12_[t].wide = std::exchange(bf16_tile, AlignedBuffer(bf16_bytes));
    }
  }
}

}  // namespace strata::cpu
