#include "core/row_set.h"

#include <algorithm>
#include <numeric>

namespace strata {

void RowSet::Append(const StepChunk& chunk, const BatchPlan::Chunk& planned) {
  const int32_t index = static_cast<int32_t>(chunks_.size());
  some_unwanted_ |= planned.num_wanted < planned.num_rows;
  chunks_.push_back(chunk);
  chunks_.back().first_row = static_cast<int32_t>(positions_.size());
  planned_.push_back(planned);
  for (int32_t i = 0; i < chunk.num_rows; ++i) {
    positions_.push_back(chunk.first_position + i);
    chunk_of_.push_back(index);
  }
}

void RowSet::Finish(const int32_t* slot_of, int num_layers) {
  step_ = {.positions = positions_,
           .chunk_of = chunk_of_,
           .chunks = chunks_,
           .slot_of = slot_of,
           .num_layers = num_layers};
}

void RowSet::SetAll(const BatchPlan& plan, std::span<const int32_t> strategy_of,
                    const int32_t* slot_of, int num_layers) {
  positions_.clear();
  chunk_of_.clear();
  chunks_.clear();
  planned_.clear();
  some_unwanted_ = false;
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    const BatchPlan::Chunk& chunk = plan.chunks[i];
    const Sequence& sequence = *chunk.sequence;
    Append({.first_row = 0,
            .num_rows = chunk.num_rows,
            .first_position = sequence.num_cached,
            .strategy = strategy_of[i],
            .page_table = sequence.pages.data(),
            .blocks_stride = sequence.pages.stride()},
           chunk);
  }
  Finish(slot_of, num_layers);
}

bool RowSet::SomeEndAt(int layer) const {
  if (!some_unwanted_) return false;  // as a rule: all decode
  return std::ranges::any_of(planned_, [&](const BatchPlan::Chunk& chunk) {
    return chunk.sequence->strategy.last_leader() == layer &&
           chunk.num_wanted < chunk.num_rows;
  });
}

void RowSet::SetKept(const RowSet& all, int layer, std::vector<int32_t>* kept) {
  positions_.clear();
  chunk_of_.clear();
  chunks_.clear();
  planned_.clear();
  some_unwanted_ = false;
  kept->clear();
  for (size_t i = 0; i < all.chunks_.size(); ++i) {
    StepChunk chunk = all.chunks_[i];
    BatchPlan::Chunk planned = all.planned_[i];
    const int32_t end_row = chunk.first_row + chunk.num_rows;
    if (planned.sequence->strategy.last_leader() == layer) {
      chunk.first_position += chunk.num_rows - planned.num_wanted;
      chunk.num_rows = planned.num_rows = planned.num_wanted;
    }
    if (chunk.num_rows == 0) continue;
    Append(chunk, planned);
    for (int32_t row = end_row - chunk.num_rows; row < end_row; ++row) {
      kept->push_back(row);
    }
  }
  Finish(all.step_.slot_of, all.step_.num_layers);
}

void RowSet::LeaderRows(int layer, std::vector<int32_t>* rows) const {
  rows->clear();
  for (size_t i = 0; i < chunks_.size();) {
    // The rows of chunks under one strategy that lie together.
    size_t end = i + 1;
    while (end < chunks_.size() &&
           chunks_[end].strategy == chunks_[i].strategy) {
      ++end;
    }
    if (planned_[i].sequence->strategy.is_leader(layer)) {
      const int32_t first_row = chunks_[i].first_row;
      const int32_t end_row =
          chunks_[end - 1].first_row + chunks_[end - 1].num_rows;
      const size_t before = rows->size();
      rows->resize(before + end_row - first_row);
      std::iota(rows->begin() + before, rows->end(), first_row);
    }
    i = end;
  }
}

void RowSet::WantedRows(std::vector<int32_t>* rows) const {
  rows->clear();
  for (size_t i = 0; i < chunks_.size(); ++i) {
    const int32_t end = chunks_[i].first_row + chunks_[i].num_rows;
    for (int32_t row = end - planned_[i].num_wanted; row < end; ++row) {
      rows->push_back(row);
    }
  }
}

}  // namespace strata
