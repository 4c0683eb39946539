#ifndef CORE_PAGE_TABLE_H_
#define CORE_PAGE_TABLE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/kv_pool.h"

namespace strata {

// The pages of one sequence, [slot][block]: slot is the rank of a leader in the
// sequence's strategy, block b holds positions
// [b * page_tokens, (b + 1) * page_tokens).  All slots have equally many
// blocks.
//
// Holds references that it does not release by itself: KvMemory does.
class PageTable {
 public:
  PageTable() = default;
  // Room for `max_blocks` blocks of each slot, so that data() stays while
  // blocks are added.
  PageTable(int num_slots, int max_blocks);

  // Adds a block to every slot.  REQUIRES: num_blocks() < max_blocks; pages has
  // num_slots() numbers.
  void AppendBlock(const KvPool::PageId* pages);
  void Set(int slot, int block, KvPool::PageId page) {
    pages_[int64_t{slot} * stride_ + block] = page;
  }
  // Slot i becomes what slot kept[i] was; the others are dropped.
  // REQUIRES: `kept` rises and names slots.
  void KeepSlots(std::span<const int> kept);

  KvPool::PageId at(int slot, int block) const {
    return pages_[int64_t{slot} * stride_ + block];
  }
  int num_slots() const { return num_slots_; }
  int num_blocks() const { return num_blocks_; }
  int64_t num_pages() const { return int64_t{num_slots_} * num_blocks_; }

  const int32_t* data() const { return pages_.data(); }  // [num_slots, stride]
  int stride() const { return stride_; }

 private:
  int num_slots_ = 0;
  int num_blocks_ = 0;
  int stride_ = 0;  // max_blocks
  std::vector<KvPool::PageId> pages_;
};

}  // namespace strata

#endif  // CORE_PAGE_TABLE_H_
