#ifndef KERNELS_CPU_ATTENTION_KERNEL_H_
#define KERNELS_CPU_ATTENTION_KERNEL_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/kv_pages.h"

namespace strata::cpu {

// Positions that one step of the online softmax takes.
inline constexpr int kBlockTokens = 64;

// One split of a tile: `rows` query vectors, `group` for each of consecutive
// positions, against at most kSplitTokens keys of one KV head.
struct AttentionSplit {
  KvType type = KvType::kF32;
  int head_dim = 0;
  int rows = 0;
  int group = 0;
  // Keys of the split that the first position sees, each later one sees one
  // more; all up to num_keys. May be 0 or negative: row r is left out if it
  // sees none.
  int first_num_keys = 0;
  int num_keys = 0;  // > 0; that the last position sees
  // Keys [16 i, 16 i + 16), the tiles of KvPages (with T = 16); what lies
  // behind num_keys is not used.
  // Behind them are those of the block that is read next, or any others.
  const std::byte* const* tiles =
      nullptr;  // [ceil(num_keys / 16) + kBlockTokens / 16]
  // Queries times scale, f32 or (AttentionKernel::bf16_queries, with bf16
  // pages) pairs of bf16.
  const void* q = nullptr;  // [rows, head_dim]
  float* scores = nullptr;  // [rows, kBlockTokens], workspace
  // Results of the rows that see a key: with s the scores, max = largest s,
  // sum = sum of exp(s - max), acc = sum of exp(s - max) * V.
  float* max = nullptr;        // [rows]
  float* sum = nullptr;        // [rows]
  float* lane_sums = nullptr;  // [rows, 16], workspace
  float* acc = nullptr;        // [rows, acc_stride]
  int acc_stride = 0;          // head_dim rounded up to 16

  int NumKeys(int row) const {
    const int keys = first_num_keys + row / group;
    return keys < num_keys ? keys : num_keys;
  }
};

struct AttentionKernel {
  bool bf16_queries;
  void (*attend)(const AttentionSplit& split);
};

// The kernel for `isa`, which must be there.
AttentionKernel GetAttentionKernel(Isa isa);

namespace internal {
void AttendPortable(const AttentionSplit& split);
void AttendAvx2(const AttentionSplit& split);
void AttendAvx512(const AttentionSplit& split);
}  // namespace internal

}  // namespace strata::cpu

#endif  // KERNELS_CPU_ATTENTION_KERNEL_H_
