#ifndef KERNELS_CPU_ATTENTION_PLAN_H_
#define KERNELS_CPU_ATTENTION_PLAN_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/step.h"

namespace strata::cpu {

// Positions after which a softmax is restarted, so that one row's work can be
// divided.
inline constexpr int kSplitTokens = 256;

// Consecutive rows of one chunk, with the query heads of one KV head: they
// share the reading of K and V.
struct AttentionTile {
  int32_t chunk;
  int32_t kv_head;
  int32_t first_row;  // in the chunk
  int32_t num_rows;
  int32_t num_splits;  // up to its last row's position
  // Where its splits' results lie, [num_splits, num_rows * group] records; < 0:
  // not divided.
  int64_t first_record;
};

// A worker's unit of work: some splits of a tile; all of them unless the tile
// is divided.
struct AttentionTask {
  int32_t tile;
  int32_t first_split;
  int32_t end_split;
};

// How the workers of a team share one call.  Written by one thread, then read
// by all; it affects who computes what, never a result.
class AttentionPlan {
 public:
  // `group`: query heads per KV head.
  void Make(const Step& step, int kv_heads, int group, int num_workers);

  // The next task not taken, or null; from any thread.
  const AttentionTask* TakeTask() {
    const size_t i = next_task_.fetch_add(1, std::memory_order_relaxed);
    return i < tasks_.size() ? &tasks_[i] : nullptr;
  }

  const AttentionTile& tile(int i) const { return tiles_[i]; }
  // Rows of divided tiles, as (tile, row in it, query head in the group) in one
  // sequence.
  struct Divided {
    int32_t tile;
    int64_t first_item;  // of num_rows * group
  };
  const std::vector<Divided>& divided() const { return divided_; }
  int64_t num_divided_items() const { return num_divided_items_; }
  int64_t num_records() const { return num_records_; }

 private:
  void AddTiles(const Step& step, int kv_heads, int group);
  void AddTasks(int group, int num_workers);

  std::vector<AttentionTile> tiles_;
  std::vector<AttentionTask> tasks_;
  std::vector<Divided> divided_;
  int64_t num_divided_items_ = 0;
  int64_t num_records_ = 0;
  std::atomic<size_t> next_task_{0};
};

// Query rows that a tile has at most, heads counted, if its group is not
// larger: few enough for the first cache, enough to read K and V rarely.
inline constexpr int kTileQueries = 24;

}  // namespace strata::cpu

#endif  // KERNELS_CPU_ATTENTION_PLAN_H_
