#include "kernels/cpu/attention_plan.h"

#include <algorithm>

namespace strata::cpu {
namespace {

// Tasks a worker should get at least, so that the last ones to end differ
// little.
constexpr int kTasksPerWorker = 8;
// What loading a key and its value costs, in query rows computed with it.
constexpr int kLoadCost = 6;

int64_t Cost(const AttentionTile& tile, int group) {
  return int64_t{tile.num_splits} * (tile.num_rows * group + kLoadCost);
}

}  // namespace

void AttentionPlan::Make(const Step& step, int kv_heads, int group,
                         int num_workers) {
  AddTiles(step, kv_heads, group);
  AddTasks(group, num_workers);
  next_task_.store(0, std::memory_order_relaxed);
}

void AttentionPlan::AddTiles(const Step& step, int kv_heads, int group) {
  tiles_.clear();
  const int32_t tile_rows = std::max(1, kTileQueries / group);
  for (size_t c = 0; c < step.chunks.size(); ++c) {
    const StepChunk& chunk = step.chunks[c];
    for (int head = 0; head < kv_heads; ++head) {
      for (int32_t row = 0; row < chunk.num_rows; row += tile_rows) {
        const int32_t rows = std::min(tile_rows, chunk.num_rows - row);
        const int32_t last_position = chunk.first_position + row + rows - 1;
        tiles_.push_back({.chunk = static_cast<int32_t>(c),
                          .kv_head = head,
                          .first_row = row,
                          .num_rows = rows,
                          .num_splits = last_position / kSplitTokens + 1,
                          .first_record = -1});
      }
    }
  }
}

void AttentionPlan::AddTasks(int group, int num_workers) {
  tasks_.clear();
  divided_.clear();
  num_divided_items_ = num_records_ = 0;
  int64_t total = 0;
  for (const AttentionTile& tile : tiles_) total += Cost(tile, group);
  const int64_t limit =
      std::max<int64_t>(1, total / (num_workers * kTasksPerWorker));
  for (size_t t = 0; t < tiles_.size(); ++t) {
    AttentionTile& tile = tiles_[t];
    const int64_t cost = Cost(tile, group);
    int32_t splits = tile.num_splits;
    if (num_workers > 1 && cost > limit && splits > 1) {
      splits = std::max<int64_t>(1, splits * limit / cost);
      const int64_t items = int64_t{tile.num_rows} * group;
      tile.first_record = num_records_;
      divided_.push_back({static_cast<int32_t>(t), num_divided_items_});
      num_records_ += tile.num_splits * items;
      num_divided_items_ += items;
    }
    for (int32_t first = 0; first < tile.num_splits; first += splits) {
      tasks_.push_back({static_cast<int32_t>(t), first,
                        std::min(first + splits, tile.num_splits)});
    }
  }
}

}  // namespace strata::cpu
