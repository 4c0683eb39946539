#include "core/page_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace strata {
namespace {

TEST(PageTableTest, BlocksOfASlotLieTogether) {
  PageTable table(3, 5);
  const int32_t* const data = table.data();
  for (int block = 0; block < 5; ++block) {
    const KvPool::PageId pages[] = {10 + block, 20 + block, 30 + block};
    table.AppendBlock(pages);
    EXPECT_EQ(table.num_blocks(), block + 1);
    EXPECT_EQ(table.num_pages(), 3 * (block + 1));
  }
  EXPECT_EQ(table.data(), data);
  EXPECT_EQ(table.stride(), 5);
  for (int slot = 0; slot < 3; ++slot) {
    for (int block = 0; block < 5; ++block) {
      EXPECT_EQ(table.at(slot, block), 10 * (slot + 1) + block);
      EXPECT_EQ(data[slot * table.stride() + block], table.at(slot, block));
    }
  }
}

TEST(PageTableTest, EmptyHoldsNothing) {
  EXPECT_EQ(PageTable().num_pages(), 0);
  EXPECT_EQ(PageTable(4, 9).num_pages(), 0);
}

TEST(PageTableTest, KeepsSlotsInTheirOrder) {
  PageTable table(4, 3);
  for (int block = 0; block < 2; ++block) {
    const KvPool::PageId pages[] = {10 + block, 20 + block, 30 + block,
                                    40 + block};
    table.AppendBlock(pages);
  }
  table.KeepSlots(std::vector<int>{1, 3});
  EXPECT_EQ(table.num_slots(), 2);
  EXPECT_EQ(table.num_blocks(), 2);
  EXPECT_EQ(table.num_pages(), 4);
  const KvPool::PageId pages[] = {22, 42};
  table.AppendBlock(pages);
  for (int block = 0; block < 3; ++block) {
    EXPECT_EQ(table.at(0, block), 20 + block);
    EXPECT_EQ(table.at(1, block), 40 + block);
    EXPECT_EQ(table.data()[table.stride() + block], 40 + block);
  }
  table.KeepSlots(std::vector<int>{0, 1});  // all
  EXPECT_EQ(table.at(1, 2), 42);
}

TEST(PageTableTest, SetReplacesOnePage) {
  PageTable table(2, 2);
  const KvPool::PageId pages[] = {1, 2};
  table.AppendBlock(pages);
  table.AppendBlock(pages);
  table.Set(1, 0, 9);
  EXPECT_EQ(table.at(0, 0), 1);
  EXPECT_EQ(table.at(1, 0), 9);
  EXPECT_EQ(table.at(0, 1), 1);
  EXPECT_EQ(table.at(1, 1), 2);
}

TEST(PageTableDeathTest, KeptSlotsRise) {
  PageTable table(3, 1);
  EXPECT_DEATH(table.KeepSlots(std::vector<int>{1, 0}), "CHECK");
  EXPECT_DEATH(table.KeepSlots(std::vector<int>{3}), "CHECK");
}

TEST(PageTableDeathTest, OneBlockTooMany) {
  PageTable table(1, 1);
  const KvPool::PageId page = 0;
  table.AppendBlock(&page);
  EXPECT_DEATH(table.AppendBlock(&page), "CHECK");
}

}  // namespace
}  // namespace strata
