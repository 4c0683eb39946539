#ifndef TESTS_KERNELS_CPU_ATTENTION_PROBLEM_H_
#define TESTS_KERNELS_CPU_ATTENTION_PROBLEM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/kv_pages.h"
#include "kernels/step.h"

namespace strata::cpu {

struct AttentionShape {
  int kv_heads = 1;
  int group = 1;  // query heads per KV head
  int head_dim = 64;
  int page_tokens = 16;
  KvType type = KvType::kF32;
};

// Rows [first_position, first_position + num_rows) of a sequence, the last ones
// that are cached.
struct ChunkShape {
  int sequence = 0;  // what K, V and queries are drawn from
  int first_position = 0;
  int num_rows = 1;
  int strategy = 0;
};

// A step of several chunks over pages in random order.  Values are functions of
// the seed, the sequence, the slot and the position, so two problems may be
// compared row by row.  Memory of pages that no position was written to is NaN.
class AttentionProblem {
 public:
  // Three layers; strategy 0 has the slots 0 1 2, strategy 1 has 0 0 1.
  static constexpr int kLayers = 3;

  AttentionProblem(const AttentionShape& shape,
                   const std::vector<ChunkShape>& chunks,
                   uint64_t page_seed = 1);

  // Runs layer `layer` with `num_workers` workers; returns [rows, q_heads *
  // head_dim].
  std::vector<float> Run(int layer, Isa isa, int num_workers) const;
  // The same by the definition, in double.
  std::vector<float> Reference(int layer) const;

  int64_t row_floats() const {
    return int64_t{shape_.kv_heads} * shape_.group * shape_.head_dim;
  }
  float scale() const { return scale_; }

 private:
  // [kv_heads, head_dim] of K (0) or V (1), as they are in the pages.
  std::vector<float> CacheRow(int which, int sequence, int slot,
                              int position) const;
  void FillPages(uint64_t page_seed);

  const AttentionShape shape_;
  const std::vector<ChunkShape> chunk_shapes_;
  const float scale_;
  const std::vector<int32_t> slot_of_ = {0, 1, 2, 0, 0, 1};
  std::unique_ptr<KvPages> pages_;
  std::vector<std::vector<int32_t>> page_tables_;
  std::vector<StepChunk> chunks_;
  std::vector<int32_t> positions_, chunk_of_;
  std::vector<float> q_;
  Step step_;
};

}  // namespace strata::cpu

#endif  // TESTS_KERNELS_CPU_ATTENTION_PROBLEM_H_
