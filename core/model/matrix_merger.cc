#include "core/model/matrix_merger.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "kernels/bf16.h"
#include "kernels/cpu/dequantize.h"
#include "kernels/cpu/half.h"

namespace strata {
namespace {

constexpr int kRows = 8;   // outputs whose sums are in registers
constexpr int kLanes = 4;  // inputs of a register
constexpr float kLargestHalf = 65504.0f;

// The nearest binary16, ties to even.  REQUIRES: finite.
uint16_t NearestHalf(float value) {
  const uint32_t sign = std::bit_cast<uint32_t>(value) >> 16 & 0x8000;
  const float magnitude = std::min(std::abs(value), kLargestHalf);
  uint32_t bits = std::bit_cast<uint32_t>(magnitude);
  if (magnitude < 0x1p-14f) {
    // The sum's last bit is worth 2^-24, one step of the subnormals.
    bits = std::bit_cast<uint32_t>(magnitude + 0.5f) -
           std::bit_cast<uint32_t>(0.5f);
  } else {
    // Rounds 13 bits off and takes the exponent's offset from 127 to 15.
    bits = (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
  }
  return static_cast<uint16_t>(sign | bits);
}

template <typename T>
std::byte* Append(T value, std::byte* out) {
  std::memcpy(out, &value, sizeof(value));
  return out + sizeof(value);
}

void EncodeBlockQ8_0(const float* x /*[32]*/, std::byte* out) {
  float largest = 0.0f;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[i]));
  // The scale as it will be read, and not below what `largest` needs.
  uint16_t d = NearestHalf(largest / 127.0f);
  if (cpu::HalfToFloat(d) * 127.0f < largest) d = std::min(d + 1, 0x7bff);
  const float scale = cpu::HalfToFloat(d);
  const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
  Append(d, out);
  for (int i = 0; i < 32; ++i) {
    // Adding 1.5 * 2^23 leaves no fraction.
    const float q = std::clamp(x[i] * inverse, -127.0f, 127.0f);
    const float rounded = q + 0x1.8p23f - 0x1.8p23f;
    out[2 + i] = static_cast<std::byte>(static_cast<int>(rounded));
  }
}

// sums[r][c] = (b * a)[r][c] for kRows rows of b.
void Multiply(const float* b /*[kRows][rank]*/, const float* a /*[rank][cols]*/,
              int64_t rank, int64_t cols, float* sums /*[kRows][cols]*/) {
  using Vector = float __attribute__((vector_size(4 * kLanes)));
  int64_t c = 0;
  for (; c + kLanes <= cols; c += kLanes) {
    Vector sum[kRows] = {};
    for (int64_t k = 0; k < rank; ++k) {
      Vector lanes;
      std::memcpy(&lanes, a + k * cols + c, sizeof(lanes));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sum[r] += b[r * rank + k] * lanes;
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      std::memcpy(sums + r * cols + c, &sum[r], sizeof(sum[r]));
    }
  }
  for (; c < cols; ++c) {
    for (int r = 0; r < kRows; ++r) {
      float sum = 0.0f;
      for (int64_t k = 0; k < rank; ++k) {
        sum += b[r * rank + k] * a[k * cols + c];
      }
      sums[r * cols + c] = sum;
    }
  }
}

// Rows [begin, end) of the merged matrix.
void MergeRows(const WeightView& base, const LowRankUpdate& update,
               const float* a /*[rank][cols]*/, int64_t begin, int64_t end,
               const WeightView& merged, std::byte* out) {
  const int64_t cols = base.cols, rank = update.a.rows;
  std::vector<float> b(kRows * rank), sums(kRows * cols), row(cols);
  for (int64_t i = begin; i < end; i += kRows) {
    const int64_t count = std::min<int64_t>(kRows, end - i);
    for (int64_t r = 0; r < count; ++r) {
      cpu::DequantizeRow(update.b, i + r, b.data() + r * rank);
    }
    Multiply(b.data(), a, rank, cols, sums.data());
    for (int64_t r = 0; r < count; ++r) {
      cpu::DequantizeRow(base, i + r, row.data());
      const float* sum = sums.data() + r * cols;
      for (int64_t c = 0; c < cols; ++c) row[c] += update.scale * sum[c];
      EncodeWeights(merged.type, row, out + (i + r) * merged.RowBytes());
    }
  }
}

}  // namespace

void EncodeWeights(DType type, std::span<const float> values, std::byte* out) {
  const auto size = static_cast<int64_t>(values.size());
  switch (type) {
    case DType::kF32:
      std::memcpy(out, values.data(), values.size_bytes());
      return;
    case DType::kF16:
      for (const float value : values) out = Append(NearestHalf(value), out);
      return;
    case DType::kBF16:
      for (const float value : values) out = Append(ToBf16(value), out);
      return;
    case DType::kQ8_0:
      for (int64_t i = 0; i < size; i += 32) {
        EncodeBlockQ8_0(values.data() + i,
                        out + i / 32 * BlockBytes(DType::kQ8_0));
      }
      return;
    default:
      STRATA_CHECK(false);
  }
}

WeightView MatrixMerger::Merge(const WeightView& base,
                               const LowRankUpdate& update) {
  const int64_t rows = base.rows, cols = base.cols, rank = update.a.rows;
  STRATA_CHECK(update.a.cols == cols && update.b.rows == rows &&
               update.b.cols == rank);
  WeightView merged = {.type = update.merged_type,
                       .rows = rows,
                       .cols = cols,
                       .split = base.split,
                       .split_unit = base.split_unit};
  merged_.resize(merged.NumBytes());
  merged.data = merged_.data();

  std::vector<float> a(rank * cols);
  for (int64_t k = 0; k < rank; ++k) {
    cpu::DequantizeRow(update.a, k, a.data() + k * cols);
  }
  // A multiple of kRows for each thread but the last.
  const int64_t share =
      (rows + num_threads_ * kRows - 1) / (num_threads_ * kRows) * kRows;
  std::vector<std::thread> threads;
  for (int64_t begin = share; begin < rows; begin += share) {
    threads.emplace_back([&, begin] {
      MergeRows(base, update, a.data(), begin, std::min(begin + share, rows),
                merged, merged_.data());
    });
  }
  MergeRows(base, update, a.data(), 0, std::min(share, rows), merged,
            merged_.data());
  for (std::thread& thread : threads) thread.join();
  return merged;
}

}  // namespace strata
