#include "core/kv_pool.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>
#include <vector>

namespace strata {
namespace {

TEST(KvPoolTest, ReservesAllOrNothing) {
  KvPool pool(10);
  EXPECT_EQ(pool.num_free(), 10);
  EXPECT_TRUE(pool.Reserve(7));
  EXPECT_FALSE(pool.Reserve(4));
  EXPECT_EQ(pool.num_reserved(), 7);
  EXPECT_TRUE(pool.Reserve(3));
  EXPECT_FALSE(pool.Reserve(1));
  EXPECT_TRUE(pool.Reserve(0));
  pool.Unreserve(10);
  EXPECT_EQ(pool.num_free(), 10);
}

TEST(KvPoolTest, AllocatedPagesWereReserved) {
  KvPool pool(3);
  ASSERT_TRUE(pool.Reserve(2));
  const KvPool::PageId a = pool.Allocate(0);
  const KvPool::PageId b = pool.Allocate(1);
  EXPECT_NE(a, b);
  EXPECT_EQ(pool.num_used(), 2);
  EXPECT_EQ(pool.num_reserved(), 0);
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_EQ(pool.num_used(0), 1);
  EXPECT_EQ(pool.num_used(1), 1);
  EXPECT_EQ(pool.num_used(99), 0);
  pool.AddReference(a);
  EXPECT_FALSE(pool.Release(a));
  EXPECT_TRUE(pool.Release(a));
  EXPECT_EQ(pool.num_used(0), 0);
  EXPECT_TRUE(pool.Release(b));
  EXPECT_EQ(pool.num_free(), 3);
}

TEST(KvPoolDeathTest, MisuseEndsTheProcess) {
  KvPool pool(2);
  EXPECT_DEATH(KvPool(0), "CHECK");
  EXPECT_DEATH(pool.Allocate(0), "CHECK");
  EXPECT_DEATH(pool.Release(0), "CHECK");
  EXPECT_DEATH(pool.Release(-1), "CHECK");
  EXPECT_DEATH(pool.Release(2), "CHECK");
  EXPECT_DEATH(pool.AddReference(1), "CHECK");
  EXPECT_DEATH(pool.Unreserve(1), "CHECK");
  EXPECT_DEATH((void)pool.Reserve(-1), "CHECK");
}

TEST(KvPoolTest, RandomOperationsAgreeWithAModel) {
  constexpr int kPages = 31;
  std::mt19937_64 random(11);
  KvPool pool(kPages);
  struct Use {
    int references;
    int label;
  };
  std::map<KvPool::PageId, Use> used;
  int64_t reserved = 0;
  for (int step = 0; step < 50000; ++step) {
    const int64_t free = kPages - reserved - static_cast<int64_t>(used.size());
    const auto any_used = [&] {
      return std::next(used.begin(), random() % used.size());
    };
    switch (random() % 5) {
      case 0: {
        const int64_t count = random() % 8;
        ASSERT_EQ(pool.Reserve(count), count <= free);
        if (count <= free) reserved += count;
        break;
      }
      case 1: {
        const int64_t count = random() % (reserved + 1);
        pool.Unreserve(count);
        reserved -= count;
        break;
      }
      case 2: {
        if (reserved == 0) break;
        const int label = random() % 3;
        const KvPool::PageId page = pool.Allocate(label);
        --reserved;
        ASSERT_TRUE(page >= 0 && page < kPages);
        ASSERT_TRUE(used.insert({page, {1, label}}).second);
        break;
      }
      case 3: {
        if (used.empty()) break;
        const auto it = any_used();
        pool.AddReference(it->first);
        ++it->second.references;
        break;
      }
      case 4: {
        if (used.empty()) break;
        const auto it = any_used();
        const bool last = --it->second.references == 0;
        ASSERT_EQ(pool.Release(it->first), last);
        if (last) used.erase(it);
        break;
      }
    }
    int64_t by_label[3] = {};
    for (const auto& [page, use] : used) ++by_label[use.label];
    ASSERT_EQ(pool.num_used(), static_cast<int64_t>(used.size()));
    ASSERT_EQ(pool.num_reserved(), reserved);
    ASSERT_EQ(pool.num_used() + pool.num_reserved() + pool.num_free(), kPages);
    for (int label = 0; label < 3; ++label) {
      ASSERT_EQ(pool.num_used(label), by_label[label]) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace strata
