#include "kernels/cpu/weight_arena.h"

#include <algorithm>

namespace strata::cpu {

namespace {

constexpr int64_t kBlockBytes = int64_t{64} << 20;
constexpr int64_t kCacheLine = 64;

}  // namespace

std::shared_ptr<std::byte> WeightArena::Allocate(int64_t num_bytes) {
  if (block_ == nullptr || num_bytes > block_->size() - used_) {
    block_ = std::make_shared<AlignedBuffer>(std::max(num_bytes, kBlockBytes));
    used_ = 0;
  }
  std::byte* memory = block_->data() + used_;
  used_ += (num_bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  return {block_, memory};
}

}  // namespace strata::cpu
