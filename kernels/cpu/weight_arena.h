#ifndef KERNELS_CPU_WEIGHT_ARENA_H_
#define KERNELS_CPU_WEIGHT_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cpu/aligned_buffer.h"

namespace strata::cpu {

// Puts matrices that are packed one after the other into common blocks of huge
// pages: a matrix of few megabytes in memory of its own would lie in small
// ones, and streaming it take half as long again.
//
// Not thread-safe.
class WeightArena {
 public:
  // Zeroed memory at a cache line.  Its block lives as long as any part of it.
  std::shared_ptr<std::byte> Allocate(int64_t num_bytes);

 private:
  std::shared_ptr<AlignedBuffer> block_;
  int64_t used_ = 0;  // bytes of block_
};

}  // namespace strata::cpu

#endif  // KERNELS_CPU_WEIGHT_ARENA_H_
