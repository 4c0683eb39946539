#include "core/page_table.h"

#include <algorithm>

#include "base/check.h"

namespace strata {

PageTable::PageTable(int num_slots, int max_blocks)
    : num_slots_(num_slots), stride_(max_blocks) {
  STRATA_CHECK(num_slots > 0 && max_blocks >= 0);
  pages_.resize(int64_t{num_slots} * max_blocks);
}

void PageTable::AppendBlock(const KvPool::PageId* pages) {
  STRATA_CHECK(num_blocks_ < stride_);
  for (int slot = 0; slot < num_slots_; ++slot) {
    pages_[int64_t{slot} * stride_ + num_blocks_] = pages[slot];
  }
  ++num_blocks_;
}

void PageTable::KeepSlots(std::span<const int> kept) {
  int slot = 0;
  for (int from : kept) {
    STRATA_CHECK(from >= slot && from < num_slots_);
    std::copy_n(pages_.begin() + int64_t{from} * stride_, num_blocks_,
                pages_.begin() + int64_t{slot} * stride_);
    ++slot;
  }
  num_slots_ = slot;
}

}  // namespace strata
