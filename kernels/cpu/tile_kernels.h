#ifndef KERNELS_CPU_TILE_KERNELS_H_
#define KERNELS_CPU_TILE_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/packed_rows.h"
#include "kernels/cpu/tile_format.h"

// The arithmetic of matrix products, for one tile of weights.
//
// Each output of a row is one chain of sums over its inputs in one order,
// whatever the number of rows, so a row's result does not depend on the rows
// beside it.
namespace strata::cpu {

// sums[r][o] = sum over inputs k of weight[o][k] * row[r][k].
struct TileArgs {
  const std::byte* tile;  // of a PackedMatrix
  PackedRows rows;        // the first is row 0
  int num_rows;
  float* sums;            // [num_rows, kTile], at a cache line
  bool add = false;       // to what is in `sums`
  bool in_memory = true;  // the tile, and not yet in a cache
};

using TileKernel = void (*)(const TileArgs& args);

// Packs one row, see RowType.
using PackRowKernel = void (*)(const float* x /*[cols]*/, int64_t cols,
                               std::byte* row);

// A kernel and the activations it takes.
struct TileProduct {
  TileKernel run;
  RowType row_type;
};

// The kernels of an instruction set.
struct TileKernels {
  // By TileFormat.  Quantised weights times int8 activations with exact sums
  // within a block; BF16 times bf16 where there are instructions for it; f32
  // else.
  TileProduct fast[kTileFormats];
  // By TileFormat.  Weights converted to f32 times f32.
  TileProduct exact[kTileFormats];
  PackRowKernel pack[3];  // by RowType
  // gate[i] = silu(gate[i]) * up[i], n a multiple of kTile; arrays at cache
  // lines.
  void (*silu_mul)(float* gate, const float* up, int64_t n);
};

// REQUIRES: this machine supports `isa`.
const TileKernels& TileKernelsFor(Isa isa);

const TileKernels& PortableTileKernels();
#if defined(__x86_64__)
const TileKernels& Avx2TileKernels();
const TileKernels& Avx512TileKernels();
#endif

}  // namespace strata::cpu

#endif  // KERNELS_CPU_TILE_KERNELS_H_
