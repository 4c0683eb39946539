#ifndef KERNELS_STEP_H_
#define KERNELS_STEP_H_

#include <cstdint>
#include <span>

namespace strata {

// Consecutive positions of one sequence in a step.
struct StepChunk {
  int32_t first_row;       // its rows are [first_row, first_row + num_rows)
  int32_t num_rows;        // > 0
  int32_t first_position;  // of first_row; positions before it are in the cache
  int32_t strategy;        // row of Step::slot_of
  // Pages of the sequence: position t of a leader with slot s lies in page
  // page_table[s * blocks_stride + t / page_tokens], at t % page_tokens.
  // All positions up to the chunk's last one have a page.
  const int32_t* page_table;  // [slots, blocks_stride]
  int32_t blocks_stride;
};

// The rows of one forward pass (a row is one position of one sequence), or what
// is left of them after the trailing skip.  Owns nothing; the arrays live until
// Backend::Submit returns.
struct Step {
  std::span<const int32_t> positions;  // [rows], from 0 within their sequence
  std::span<const int32_t> chunk_of;   // [rows], index into chunks
  std::span<const StepChunk> chunks;   // in the order of their rows
  // [strategies, layers]: the slot (the rank among the strategy's leaders, from
  // 0) of the leader that the layer reads.
  const int32_t* slot_of = nullptr;
  int32_t num_layers = 0;

  int rows() const { return static_cast<int>(positions.size()); }
  int SlotOf(const StepChunk& chunk, int layer) const {
    return slot_of[int64_t{chunk.strategy} * num_layers + layer];
  }
};

}  // namespace strata

#endif  // KERNELS_STEP_H_
