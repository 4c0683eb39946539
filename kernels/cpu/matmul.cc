#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/bf16.h"
#include "kernels/cpu/rms_norm.h"

namespace strata::cpu {

namespace {

// Rows that a worker takes through a tile of weights at a time: their sums stay
// in the first-level cache.
constexpr int64_t kRowsPerItem = 64;

constexpr RowType kRowTypes[] = {RowType::kF32, RowType::kBF16, RowType::kInt8};

// y = sums + bias, or y += them.
void WriteSums(const float* __restrict sums, const float* __restrict bias,
               bool accumulate, int n, float* __restrict y) {
  if (n == kTile && bias == nullptr) {  // nearly always: by vectors
    if (!accumulate) {
      std::memcpy(y, sums, kTile * sizeof(float));
    } else {
      for (int o = 0; o < kTile; ++o) y[o] += sums[o];
    }
    return;
  }
  for (int o = 0; o < n; ++o) {
    float v = sums[o];
    if (bias != nullptr) v += bias[o];
    y[o] = accumulate ? y[o] + v : v;
  }
}

float AsFloat(float x) { return x; }
float AsFloat(Bf16 x) { return ToFloat(x); }

// Adds what a tile leaves out, after all else and in the same order for every
// row, of X.
template <class X>
void AddLeftOut(std::span<const LeftOut> left_out, const PackedRows& rows,
                int64_t num_rows, float* sums) {
  for (const LeftOut& w : left_out) {
    for (int64_t r = 0; r < num_rows; ++r) {
      const X x = reinterpret_cast<const X*>(rows.row(r))[w.input];
      sums[r * kTile + w.output] += w.weight * AsFloat(x);
    }
  }
}

}  // namespace

Matmul::Matmul(Isa isa, bool exact_f32, int num_workers)
    : kernels_(TileKernelsFor(isa)),
      products_(exact_f32 ? kernels_.exact : kernels_.fast),
      shares_(num_workers),
      scratch_(num_workers) {
  for (Scratch& scratch : scratch_) {
    scratch.sums.Reserve(2 * kRowsPerItem * kTile * sizeof(float));
  }
}

void Matmul::Reserve(int num_rows, int64_t cols) {
  for (const RowType type : kRowTypes) {
    const int64_t stride = PackedRowStride(type, cols);
    rows_[static_cast<int>(type)].Reserve(num_rows * stride);
    for (Scratch& scratch : scratch_) {
      scratch.row[static_cast<int>(type)].Reserve(stride);
    }
  }
  for (Scratch& scratch : scratch_) {
    scratch.normalized.Reserve(cols * sizeof(float));
  }
}

int64_t Matmul::num_bytes() const {
  int64_t sum = 0;
  for (const AlignedBuffer& rows : rows_) sum += rows.size();
  for (const Scratch& scratch : scratch_) {
    sum += scratch.normalized.size() + scratch.sums.size();
    for (const AlignedBuffer& row : scratch.row) sum += row.size();
  }
  return sum;
}

PackedRows Matmul::Rows(AlignedBuffer* buffers, RowType type,
                        int64_t cols) const {
  return {.data = buffers[static_cast<int>(type)].data(),
          .stride = PackedRowStride(type, cols),
          .cols = cols};
}

void Matmul::Run(const MatmulInput& input,
                 std::span<const MatmulOutput> outputs, const Worker& worker) {
  if (input.num_rows == 0) return;
  Scratch& scratch = scratch_[worker.id];
  AlignedBuffer* buffers = rows_;
  if (input.num_rows == 1) {
    // Each for itself, which saves a barrier.
    buffers = scratch.row;
    Pack(input, outputs, buffers, {0, 1}, scratch);
  } else {
    Pack(input, outputs, buffers, worker.ShareOf(input.num_rows), scratch);
    worker.Sync();
  }

  const int64_t chunks = (input.num_rows + kRowsPerItem - 1) / kRowsPerItem;
  int64_t num_items = 0;
  for (const MatmulOutput& output : outputs) {
    num_items += output.w->num_tiles() * chunks;
  }
  shares_.ForEach(num_items, worker, [&](Share items) {
    int64_t first = 0;  // of the output's items
    for (const MatmulOutput& output : outputs) {
      const int64_t end = first + output.w->num_tiles() * chunks;
      for (int64_t i = std::max(items.begin, first);
           i < std::min(items.end, end); ++i) {
        const int64_t row = (i - first) % chunks * kRowsPerItem;
        RunItem(output, buffers, (i - first) / chunks,
                {row, std::min<int64_t>(row + kRowsPerItem, input.num_rows)},
                scratch);
      }
      first = end;
    }
  });
}

void Matmul::Pack(const MatmulInput& input,
                  std::span<const MatmulOutput> outputs, AlignedBuffer* buffers,
                  Share rows, Scratch& scratch) const {
  bool wanted[3] = {};
  for (const MatmulOutput& output : outputs) {
    STRATA_CHECK(output.w->cols() == input.cols);
    wanted[static_cast<int>(product(output.w->format()).row_type)] = true;
    if (output.up == nullptr) continue;
    wanted[static_cast<int>(product(output.up->format()).row_type)] = true;
  }
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const int64_t id = input.row_ids == nullptr ? i : input.row_ids[i];
    const float* x = input.x + id * input.cols;
    if (input.norm.weight != nullptr) {
      NormalizeRow(x, input.norm, static_cast<int>(input.cols),
                   scratch.normalized.floats());
      x = scratch.normalized.floats();
    }
    for (const RowType type : kRowTypes) {
      if (!wanted[static_cast<int>(type)]) continue;
      kernels_.pack[static_cast<int>(type)](
          x, input.cols, Rows(buffers, type, input.cols).row(i));
    }
  }
}

void Matmul::RunItem(const MatmulOutput& output, AlignedBuffer* buffers,
                     int64_t tile, Share rows, Scratch& scratch) const {
  const int64_t num_rows = rows.end - rows.begin;
  float* sums = scratch.sums.floats();
  SumTile(*output.w, buffers, tile, rows, sums);
  if (output.up != nullptr) {
    float* up = sums + kRowsPerItem * kTile;
    SumTile(*output.up, buffers, tile, rows, up);
    kernels_.silu_mul(sums, up, num_rows * kTile);
  }
  const int64_t first = tile * kTile;
  const int64_t stride = output.stride > 0 ? output.stride : output.w->rows();
  const int64_t n = std::min<int64_t>(kTile, output.w->rows() - first);
  for (int64_t i = 0; i < num_rows; ++i) {
    WriteSums(sums + i * kTile,
              output.bias == nullptr ? nullptr : output.bias + first,
              output.accumulate, static_cast<int>(n),
              output.y + (rows.begin + i) * stride + first);
  }
}

void Matmul::SumTile(const PackedMatrix& w, AlignedBuffer* buffers,
                     int64_t tile, Share rows, float* sums) const {
  const int64_t num_rows = rows.end - rows.begin;
  const TileProduct& product = this->product(w.format(tile));
  PackedRows packed = Rows(buffers, product.row_type, w.cols());
  packed.data = packed.row(rows.begin);
  product.run({.tile = w.tile(tile),
               .rows = packed,
               .num_rows = static_cast<int>(num_rows),
               .sums = sums});
  const std::span<const LeftOut> left_out = w.left_out(tile);
  if (product.row_type == RowType::kBF16) {
    AddLeftOut<Bf16>(left_out, packed, num_rows, sums);
  } else {
    AddLeftOut<float>(left_out, packed, num_rows, sums);
  }
}

}  // namespace strata::cpu
