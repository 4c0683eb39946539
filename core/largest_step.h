#ifndef CORE_LARGEST_STEP_H_
#define CORE_LARGEST_STEP_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/step.h"

namespace strata {

// A made-up step of `num_rows` rows: single ones of up to `num_decoding`
// sequences, then a prompt; all its pages are page 0.  For Backend::Reserve.
//
// Owns its arrays; step() points into them.
class LargestStep {
 public:
  LargestStep(int num_decoding, int num_rows, int page_tokens, int num_layers)
      : rows_(num_rows),
        positions_(num_rows),
        chunk_of_(num_rows),
        zeros_(std::max({num_rows, num_layers, num_rows / page_tokens + 1})) {
    std::iota(rows_.begin(), rows_.end(), 0);
    for (int row = 0; row < num_rows;) {
      const int rest = num_rows - row;
      const int count = row < num_decoding ? 1 : rest;
      chunks_.push_back({.first_row = row,
                         .num_rows = count,
                         .first_position = 0,
                         .strategy = 0,
                         .page_table = zeros_.data(),
                         .blocks_stride = static_cast<int32_t>(zeros_.size())});
      for (int i = 0; i < count; ++i, ++row) {
        positions_[row] = i;
        chunk_of_[row] = static_cast<int32_t>(chunks_.size()) - 1;
      }
    }
    step_ = {.positions = positions_,
             .chunk_of = chunk_of_,
             .chunks = chunks_,
             .slot_of = zeros_.data(),
             .num_layers = num_layers};
  }
  LargestStep(const LargestStep&) = delete;
  LargestStep& operator=(const LargestStep&) = delete;

  const Step& step() const { return step_; }
  std::span<const int32_t> rows() const { return rows_; }  // 0, 1, 2, ...
  std::span<const int32_t> tokens() const {
    return std::span(zeros_).first(rows_.size());
  }

 private:
  std::vector<int32_t> rows_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> chunk_of_;
  std::vector<int32_t> zeros_;  // tokens, slots and pages
  std::vector<StepChunk> chunks_;
  Step step_;
};

}  // namespace strata

#endif  // CORE_LARGEST_STEP_H_
