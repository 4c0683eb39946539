#include "core/page_table.h"

#include <gtest/gtest.h>

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

TEST(PageTableDeathTest, OneBlockTooMany) {
  PageTable table(1, 1);
  const KvPool::PageId page = 0;
  table.AppendBlock(&page);
  EXPECT_DEATH(table.AppendBlock(&page), "CHECK");
}

}  // namespace
}  // namespace strata
