#ifndef KERNELS_CPU_MATMUL_H_
#define KERNELS_CPU_MATMUL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/aligned_buffer.h"
#include "kernels/cpu/packed_matrix.h"
#include "kernels/cpu/packed_rows.h"
#include "kernels/cpu/stealing_shares.h"
#include "kernels/cpu/tile_kernels.h"
#include "kernels/cpu/worker.h"
#include "kernels/ops.h"

namespace strata::cpu {

// The activations of a product: rows of x, normalised.
struct MatmulInput {
  const float* x = nullptr;  // [*, cols]
  int64_t cols = 0;
  int num_rows = 0;
  const int32_t* row_ids =
      nullptr;  // [num_rows]: input i is x[row_ids[i]]; null: x[i]
  RmsNorm norm = {};
};

// y[i] = w input[i] + bias, added to y[i] where `accumulate`; with `up`, silu(w
// input[i]) * (up input[i]).
struct MatmulOutput {
  const PackedMatrix* w = nullptr;
  const PackedMatrix* up = nullptr;  // of the same shape, or null
  const float* bias = nullptr;       // [w->rows()] or null
  float* y = nullptr;                // [num_rows, w->rows()]
  int64_t stride = 0;  // floats from row to row of y; 0: w->rows()
  bool accumulate = false;
};

// Products of matrices and rows: packs the rows for the kernels, shares the
// tiles of the weights among the workers.
class Matmul {
 public:
  Matmul(Isa isa, bool exact_f32, int num_workers);

  // Memory for inputs of this size; when no worker runs.
  void Reserve(int num_rows, int64_t cols);
  int64_t num_bytes() const;  // reserved

  // Called by all workers.  Another Run may begin only after a Sync.
  // REQUIRES: Reserve of this size.
  void Run(const MatmulInput& input, std::span<const MatmulOutput> outputs,
           const Worker& worker);

 private:
  // What one worker has for itself.
  struct Scratch {
    AlignedBuffer normalized;  // f32 [cols]
    AlignedBuffer row[3];      // a packed row, by RowType
    AlignedBuffer sums;        // f32 [2][kRowsPerItem, kTile]
  };

  const TileProduct& product(TileFormat format) const {
    return products_[static_cast<int>(format)];
  }
  PackedRows Rows(AlignedBuffer* buffers, RowType type, int64_t cols) const;
  void Pack(const MatmulInput& input, std::span<const MatmulOutput> outputs,
            AlignedBuffer* buffers, Share rows, Scratch& scratch) const;
  void RunItem(const MatmulOutput& output, AlignedBuffer* buffers, int64_t tile,
               Share rows, Scratch& scratch) const;
  void SumTile(const PackedMatrix& w, AlignedBuffer* buffers, int64_t tile,
               Share rows, float* sums) const;

  const TileKernels& kernels_;
  const std::span<const TileProduct> products_;  // by TileFormat
  AlignedBuffer rows_[3];                        // of several rows, by RowType
  StealingShares shares_;         // of tiles, times kRowsPerItem rows
  std::vector<Scratch> scratch_;  // by worker
};

}  // namespace strata::cpu

#endif  // KERNELS_CPU_MATMUL_H_
