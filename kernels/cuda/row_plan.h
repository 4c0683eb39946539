#ifndef KERNELS_CUDA_ROW_PLAN_H_
#define KERNELS_CUDA_ROW_PLAN_H_

#include <algorithm>
#include <cstdint>
#include <span>

namespace strata::cuda {

// Whether `rows` is 0, 1, ..., count - 1.
inline bool IsIdentity(std::span<const int32_t> rows, int count) {
  if (static_cast<int>(rows.size()) != count) return false;
  for (int i = 0; i < count; ++i) {
    if (rows[i] != i) return false;
  }
  return true;
}

// DecodeScratch::max_splits for a launch: blocks that share one row's cache, so
// that few rows fill the device too.
inline int MaxSplits(int rows, int kv_heads, int num_multiprocessors) {
  constexpr int kBlocksPerMultiprocessor = 2;
  const int blocks = kBlocksPerMultiprocessor * num_multiprocessors;
  return std::clamp(blocks / std::max(1, rows * kv_heads), 1, 32);
}

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_ROW_PLAN_H_
