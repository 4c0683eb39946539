#ifndef TESTS_KERNELS_CPU_PACKED_H_
#define TESTS_KERNELS_CPU_PACKED_H_

#include <memory>

#include "kernels/cpu/packed_matrix.h"

namespace strata::cpu {

// The matrix, packed by one thread.
inline std::unique_ptr<PackedMatrix> Packed(const WeightView& view) {
  WeightArena arena;
  auto matrix = std::make_unique<PackedMatrix>(view, arena);
  matrix->Fill(view, Worker{});
  return matrix;
}

}  // namespace strata::cpu

#endif  // TESTS_KERNELS_CPU_PACKED_H_
