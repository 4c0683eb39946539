#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "kernels/bf16.h"
#include "kernels/cpu/attention_kernel.h"
#include "kernels/cpu/exp.h"

namespace strata::cpu {
namespace {

constexpr int kSplitTiles = kSplitTokens / KvPages::kTileTokens;
constexpr int kAheadTiles = kBlockTokens / KvPages::kTileTokens;
constexpr int kSlackFloats = 16;  // kernels may read a vector beyond values

int RoundUp(int n, int unit) { return (n + unit - 1) / unit * unit; }

// Result of one query row over some splits: acc / sum is its output.
struct Record {
  float* acc;  // [head_dim], behind it the two:
  float* max;
  float* sum;
};

// Shapes of one call.
struct Shape {
  int head_dim;
  int group;  // query heads per KV head
  int acc_stride;
  int64_t q_dim;  // of all query heads

  int record_floats() const { return acc_stride + 2; }
  Record RecordAt(float* records, int64_t i) const {
    float* acc = records + i * record_floats();
    return {acc, acc + acc_stride, acc + acc_stride + 1};
  }
};

void Clear(const Record& record, int head_dim) {
  std::fill(record.acc, record.acc + head_dim, 0.0f);
  *record.max = -std::numeric_limits<float>::infinity();
  *record.sum = 0.0f;
}

// Adds the result of later keys to that of earlier ones.
void Fold(const Record& later, int head_dim, const Record& total) {
  const float max = std::max(*total.max, *later.max);
  const float total_scale = Exp(*total.max - max),
              later_scale = Exp(*later.max - max);
  *total.max = max;
  *total.sum = *total.sum * total_scale + *later.sum * later_scale;
  for (int d = 0; d < head_dim; ++d) {
    total.acc[d] = total.acc[d] * total_scale + later.acc[d] * later_scale;
  }
}

void WriteOutput(const Record& total, int head_dim, float* out) {
  const float scale = 1.0f / *total.sum;
  for (int d = 0; d < head_dim; ++d) out[d] = total.acc[d] * scale;
}

// One worker's memory for a task.
struct Workspace {
  float* q;          // [rows, head_dim], times scale
  uint32_t* q_bf16;  // [rows, head_dim / 2], pairs of the same
  float* scores;     // [rows, kBlockTokens]
  float* lane_sums;  // [rows, 16]
  float* max;        // [rows], of a split
  float* sum;        // [rows], of a split
  float* acc;        // [rows, acc_stride], of a split
  float* totals;     // [rows] records
  std::byte*
      tiles;  // copies of a split's tiles, where pages are smaller than these

  Workspace(const Shape& shape, int rows, std::vector<float>& memory) {
    const int64_t tile_floats =
        int64_t{2} * shape.head_dim * kSplitTokens + kSlackFloats;
    const int64_t row_floats = shape.head_dim * 3 / 2 + kBlockTokens + 16 + 2 +
                               shape.acc_stride + shape.record_floats();
    const size_t num_floats = rows * row_floats + tile_floats;
    if (memory.size() < num_floats) memory.resize(num_floats);
    float* next = memory.data();
    const auto take = [&](int64_t count) {
      return std::exchange(next, next + count);
    };
    q = take(int64_t{rows} * shape.head_dim);
    q_bf16 =
        reinterpret_cast<uint32_t*>(take(int64_t{rows} * shape.head_dim / 2));
    scores = take(int64_t{rows} * kBlockTokens);
    lane_sums = take(int64_t{rows} * 16);
    max = take(rows);
    sum = take(rows);
    acc = take(int64_t{rows} * shape.acc_stride);
    totals = take(int64_t{rows} * shape.record_floats());
    tiles = reinterpret_cast<std::byte*>(take(tile_floats));
  }
};

// Copies the tiles of 16 / T pages into one of 16 positions.
void JoinTiles(const KvPages& pages, const int32_t* page_numbers, int count,
               int kv_head, std::byte* joined) {
  const int head_dim = pages.layout().head_dim, tokens = pages.tile_tokens();
  const bool is_f32 = pages.type() == KvType::kF32;
  // A step of K's first dimension has 4 bytes a key in both types.
  const int k_steps = is_f32 ? head_dim : head_dim / 2, k_bytes = 4 * tokens;
  std::byte* joined_v =
      joined + KvPages::kTileTokens / tokens * pages.tile_bytes();
  for (int i = 0; i < count; ++i) {
    const std::byte* tile = pages.Tile(page_numbers[i], kv_head, 0);
    for (int step = 0; step < k_steps; ++step) {
      std::memcpy(joined + step * 4 * KvPages::kTileTokens + i * k_bytes,
                  tile + step * k_bytes, k_bytes);
    }
    std::memcpy(joined_v + i * pages.tile_bytes(), tile + pages.tile_bytes(),
                pages.tile_bytes());
  }
}

// Finds the tiles with positions [first, first + num_keys) of a sequence, and
// what the kernel may prefetch: the next ones up to position `end`.
void FindTiles(const KvPages& pages, const int32_t* page_table, int kv_head,
               int64_t first, int num_keys, int64_t end, std::byte* copies,
               const std::byte** tiles /*[kSplitTiles + kAheadTiles]*/) {
  constexpr int kTile = KvPages::kTileTokens;
  const int page_tokens = pages.layout().page_tokens;
  for (int key = 0; key < num_keys; key += kTile) {
    const int32_t* page = page_table + (first + key) / page_tokens;
    const std::byte*& tile = tiles[key / kTile];
    if (page_tokens >= kTile) {
      tile = pages.Tile(*page, kv_head, (first + key) % page_tokens / kTile);
      continue;
    }
    const int count =
        (std::min(num_keys - key, kTile) + page_tokens - 1) / page_tokens;
    std::byte* copy =
        copies + key / kTile * (kTile / page_tokens) * 2 * pages.tile_bytes();
    JoinTiles(pages, page, count, kv_head, copy);
    tile = copy;
  }
  const int num_tiles = (num_keys + kTile - 1) / kTile;
  for (int i = num_tiles; i < num_tiles + kAheadTiles; ++i) {
    const int64_t key = first + i * kTile;
    const bool is_next = page_tokens >= kTile && key < end;
    tiles[i] = is_next ? pages.Tile(page_table[key / page_tokens], kv_head,
                                    key % page_tokens / kTile)
                       : tiles[0];
  }
}

// What one worker does: tasks, then its share of the divided tiles' rows.
class AttentionWorker {
 public:
  AttentionWorker(const AttentionArgs& args, const KvPages& pages,
                  const AttentionPlan& plan, const AttentionKernel& kernel,
                  const Shape& shape, float* partials,
                  std::vector<float>& memory)
      : args_(args),
        pages_(pages),
        plan_(plan),
        kernel_(kernel),
        shape_(shape),
        partials_(partials),
        workspace_(shape, std::max(kTileQueries, shape.group), memory) {}

  void Run(const AttentionTask& task) {
    const AttentionTile& tile = plan_.tile(task.tile);
    const StepChunk& chunk = args_.step->chunks[tile.chunk];
    const int rows = tile.num_rows * shape_.group;
    LoadQueries(tile, chunk);
    const bool divided = tile.first_record >= 0;
    for (int r = 0; !divided && r < rows; ++r) {
      Clear(shape_.RecordAt(workspace_.totals, r), shape_.head_dim);
    }
    for (int split = task.first_split; split < task.end_split; ++split) {
      const int first_row = AttendSplit(tile, chunk, split,
                                        int64_t{task.end_split} * kSplitTokens);
      for (int r = first_row; r < rows; ++r) {
        const Record result = {workspace_.acc + r * shape_.acc_stride,
                               workspace_.max + r, workspace_.sum + r};
        if (divided) {
          Copy(result,
               shape_.RecordAt(partials_,
                               tile.first_record + int64_t{split} * rows + r));
        } else {
          Fold(result, shape_.head_dim, shape_.RecordAt(workspace_.totals, r));
        }
      }
    }
    for (int r = 0; !divided && r < rows; ++r) {
      WriteOutput(shape_.RecordAt(workspace_.totals, r), shape_.head_dim,
                  Output(tile, chunk, r));
    }
  }

  // Folds the splits of query row `r` of a divided tile.
  void Merge(const AttentionTile& tile, int r) {
    const StepChunk& chunk = args_.step->chunks[tile.chunk];
    const int64_t position =
        chunk.first_position + tile.first_row + r / shape_.group;
    const int64_t rows = int64_t{tile.num_rows} * shape_.group;
    const Record total = shape_.RecordAt(workspace_.totals, 0);
    Clear(total, shape_.head_dim);
    for (int split = 0; split <= position / kSplitTokens; ++split) {
      Fold(shape_.RecordAt(partials_, tile.first_record + split * rows + r),
           shape_.head_dim, total);
    }
    WriteOutput(total, shape_.head_dim, Output(tile, chunk, r));
  }

 private:
  // Elements before those of query row `r` of the tile, in q and out.
  int64_t Offset(const AttentionTile& tile, const StepChunk& chunk,
                 int r) const {
    const int64_t row = chunk.first_row + tile.first_row + r / shape_.group;
    const int64_t head =
        int64_t{tile.kv_head} * shape_.group + r % shape_.group;
    return row * shape_.q_dim + head * shape_.head_dim;
  }
  float* Output(const AttentionTile& tile, const StepChunk& chunk,
                int r) const {
    return args_.out + Offset(tile, chunk, r);
  }

  bool UsesBf16Queries() const {
    return kernel_.bf16_queries && pages_.type() == KvType::kBF16;
  }

  void LoadQueries(const AttentionTile& tile, const StepChunk& chunk) {
    const int head_dim = shape_.head_dim;
    for (int r = 0; r < tile.num_rows * shape_.group; ++r) {
      const float* q = args_.q + Offset(tile, chunk, r);
      float* scaled = workspace_.q + r * head_dim;
      for (int d = 0; d < head_dim; ++d) scaled[d] = q[d] * args_.scale;
      if (!UsesBf16Queries()) continue;
      uint32_t* pairs = workspace_.q_bf16 + r * head_dim / 2;
      for (int i = 0; i < head_dim / 2; ++i) {
        pairs[i] = static_cast<uint16_t>(ToBf16(scaled[2 * i])) |
                   uint32_t{static_cast<uint16_t>(ToBf16(scaled[2 * i + 1]))}
                       << 16;
      }
    }
  }

  // Results go to the workspace.  `end`: of the positions the task will read.
  // Returns the first query row that sees a key of the split.
  int AttendSplit(const AttentionTile& tile, const StepChunk& chunk, int split,
                  int64_t end) {
    const int64_t first_key = int64_t{split} * kSplitTokens;
    const int64_t first_num_keys =
        chunk.first_position + tile.first_row + 1 - first_key;
    const int num_keys = static_cast<int>(
        std::min<int64_t>(kSplitTokens, first_num_keys + tile.num_rows - 1));
    const std::byte* tiles[kSplitTiles + kAheadTiles];
    const int32_t* page_table =
        chunk.page_table +
        int64_t{args_.step->SlotOf(chunk, args_.layer)} * chunk.blocks_stride;
    end = std::min<int64_t>(
        end, chunk.first_position + tile.first_row + tile.num_rows);
    FindTiles(pages_, page_table, tile.kv_head, first_key, num_keys, end,
              workspace_.tiles, tiles);
    kernel_.attend({
        .type = pages_.type(),
        .head_dim = shape_.head_dim,
        .rows = tile.num_rows * shape_.group,
        .group = shape_.group,
        .first_num_keys =
            static_cast<int>(std::min<int64_t>(kSplitTokens, first_num_keys)),
        .num_keys = num_keys,
        .tiles = tiles,
        .q = UsesBf16Queries() ? static_cast<const void*>(workspace_.q_bf16)
                               : workspace_.q,
        .scores = workspace_.scores,
        .max = workspace_.max,
        .sum = workspace_.sum,
        .lane_sums = workspace_.lane_sums,
        .acc = workspace_.acc,
        .acc_stride = shape_.acc_stride,
    });
    return std::max<int64_t>(0, 1 - first_num_keys) * shape_.group;
  }

  void Copy(const Record& from, const Record& to) const {
    std::memcpy(to.acc, from.acc, shape_.head_dim * sizeof(float));
    *to.max = *from.max;
    *to.sum = *from.sum;
  }

  const AttentionArgs& args_;
  const KvPages& pages_;
  const AttentionPlan& plan_;
  const AttentionKernel& kernel_;
  const Shape shape_;
  float* const partials_;
  const Workspace workspace_;
};

}  // namespace

AttentionScratch::AttentionScratch(int num_workers, Isa isa)
    : isa_(isa), workspaces_(num_workers) {}

void Attention(const AttentionArgs& args, const KvPages& pages,
               AttentionScratch& scratch, const Worker& worker) {
  const KvLayout& layout = pages.layout();
  STRATA_CHECK(args.q_heads % layout.kv_heads == 0);
  const Shape shape = {.head_dim = layout.head_dim,
                       .group = args.q_heads / layout.kv_heads,
                       .acc_stride = RoundUp(layout.head_dim, 16),
                       .q_dim = int64_t{args.q_heads} * layout.head_dim};
  AttentionPlan& plan = scratch.plan_;
  if (worker.id == 0) {
    plan.Make(*args.step, layout.kv_heads, shape.group, worker.count);
    const size_t num_floats = plan.num_records() * shape.record_floats();
    if (scratch.partials_.size() < num_floats)
      scratch.partials_.resize(num_floats);
  }
  worker.Sync();
  const AttentionKernel kernel = GetAttentionKernel(scratch.isa_);
  AttentionWorker attention(args, pages, plan, kernel, shape,
                            scratch.partials_.data(),
                            scratch.workspaces_[worker.id]);
  while (const AttentionTask* task = plan.TakeTask()) attention.Run(*task);
  if (plan.num_divided_items() == 0) return;
  worker.Sync();
  const Share share = worker.ShareOf(plan.num_divided_items());
  for (const AttentionPlan::Divided& divided : plan.divided()) {
    const AttentionTile& tile = plan.tile(divided.tile);
    const int64_t items = int64_t{tile.num_rows} * shape.group;
    const int64_t begin =
        std::max<int64_t>(0, share.begin - divided.first_item);
    const int64_t end = std::min(items, share.end - divided.first_item);
    for (int64_t r = begin; r < end; ++r)
      attention.Merge(tile, static_cast<int>(r));
  }
}

}  // namespace strata::cpu
