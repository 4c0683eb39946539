#include "core/kv_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace strata {
namespace {

constexpr int kPageTokens = 2;

// A pool whose pages can be entered in the index, each under its own prefix.
class Pages {
 public:
  explicit Pages(int64_t num_pages)
      : pool(num_pages, kPageTokens),
        lineage_(pool.prefixes().AcquireLineages(SharingStrategy::Full(1))[0]),
        public_(pool.prefixes().AcquireRoot("public", false)),
        private_(pool.prefixes().AcquireRoot("private", true)) {}

  KvPool::PageId Allocate(int label = 0) {
    EXPECT_TRUE(pool.Reserve(1));
    return pool.Allocate(label);
  }
  void Enter(KvPool::PageId page, bool is_private = false) {
    const int32_t tokens[kPageTokens] = {++last_token_, 7};
    PrefixIndex& index = pool.prefixes();
    const PrefixIndex::NodeId node =
        index.AcquireChild(is_private ? private_ : public_, tokens);
    index.Insert(node, lineage_, page);
    index.ReleaseNode(node);
  }

  KvPool pool;

 private:
  const PrefixIndex::LineageId lineage_;
  const PrefixIndex::NodeId public_;
  const PrefixIndex::NodeId private_;
  int32_t last_token_ = 0;
};

TEST(KvPoolTest, ReservesAllOrNothing) {
  KvPool pool(10, kPageTokens);
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
  KvPool pool(3, kPageTokens);
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
  pool.AddReference(a, 5);
  EXPECT_EQ(pool.num_used(5), 0);  // it was used already
  pool.Release(a);
  EXPECT_TRUE(pool.is_used(a));
  pool.SetLabel(a, 5);
  EXPECT_EQ(pool.num_used(5), 1);
  EXPECT_EQ(pool.num_used(0), 0);
  pool.Release(a);
  EXPECT_FALSE(pool.is_used(a));
  EXPECT_EQ(pool.num_used(5), 0);
  pool.Release(b);
  EXPECT_EQ(pool.num_free(), 3);
  EXPECT_EQ(pool.num_cached(), 0);
}

TEST(KvPoolTest, KeepsWhatTheIndexContainsUntilItIsNeeded) {
  Pages pages(3);
  KvPool& pool = pages.pool;
  const KvPool::PageId a = pages.Allocate();
  const KvPool::PageId b = pages.Allocate();
  pages.Enter(a);
  pages.Enter(b);
  EXPECT_EQ(pool.num_cached(), 0);  // in use
  pool.Release(b);
  pool.Release(a);
  EXPECT_EQ(pool.num_cached(), 2);
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_EQ(pool.num_used(), 0);

  pool.AddReference(b, 4);  // found again
  EXPECT_EQ(pool.num_used(4), 1);
  EXPECT_EQ(pool.num_cached(), 1);
  pool.Release(b);

  EXPECT_NE(pages.Allocate(), a);  // the free page comes first
  EXPECT_TRUE(pool.prefixes().Contains(a));
  EXPECT_EQ(pages.Allocate(), a);  // then what was not used for longest
  EXPECT_FALSE(pool.prefixes().Contains(a));
  EXPECT_TRUE(pool.prefixes().Contains(b));
  EXPECT_EQ(pool.num_cached(), 1);
}

TEST(KvPoolTest, PromisesAreMadeOutOfKeptPagesToo) {
  Pages pages(4);
  KvPool& pool = pages.pool;
  std::vector<KvPool::PageId> kept;
  for (int i = 0; i < 3; ++i) kept.push_back(pages.Allocate());
  for (KvPool::PageId page : kept) {
    pages.Enter(page);
    pool.Release(page);
  }
  ASSERT_TRUE(pool.Reserve(2));  // the free one and one of the kept
  EXPECT_EQ(pool.num_free(), 0);
  EXPECT_EQ(pool.num_cached(), 2);
  EXPECT_EQ(pool.num_reserved(), 2);
  EXPECT_FALSE(pool.Reserve(3));
  ASSERT_TRUE(pool.Reserve(2));
  EXPECT_EQ(pool.num_cached(), 0);
  for (KvPool::PageId page : kept) {
    EXPECT_TRUE(pool.prefixes().Contains(page));  // nothing was evicted yet
  }
  pool.Unreserve(4);
  EXPECT_EQ(pool.num_cached(), 3);
}

TEST(KvPoolTest, PrivatePagesAreNotKept) {
  Pages pages(2);
  const KvPool::PageId page = pages.Allocate();
  pages.Enter(page, /*is_private=*/true);
  pages.pool.AddReference(page, 0);
  pages.pool.Release(page);
  EXPECT_TRUE(pages.pool.prefixes().Contains(page));
  pages.pool.Release(page);
  EXPECT_FALSE(pages.pool.prefixes().Contains(page));
  EXPECT_EQ(pages.pool.num_free(), 2);
}

TEST(KvPoolDeathTest, MisuseEndsTheProcess) {
  KvPool pool(2, kPageTokens);
  EXPECT_DEATH(KvPool(0, kPageTokens), "CHECK");
  EXPECT_DEATH(KvPool(2, 0), "CHECK");
  EXPECT_DEATH(pool.Allocate(0), "CHECK");
  EXPECT_DEATH(pool.Release(0), "CHECK");
  EXPECT_DEATH(pool.Release(-1), "CHECK");
  EXPECT_DEATH(pool.Release(2), "CHECK");
  EXPECT_DEATH(pool.AddReference(1, 0), "CHECK");
  EXPECT_DEATH(pool.SetLabel(1, 0), "CHECK");
  EXPECT_DEATH(pool.Unreserve(1), "CHECK");
  EXPECT_DEATH((void)pool.Reserve(-1), "CHECK");
  Pages pages(1);
  const KvPool::PageId page = pages.Allocate();
  pages.Enter(page);
  pages.pool.Release(page);
  ASSERT_TRUE(pages.pool.Reserve(1));
  EXPECT_DEATH(pages.pool.AddReference(page, 0), "CHECK");  // it is promised
}

// A pool and what it must be: the used pages, those in the index, the order of
// the kept ones.
class RandomPool {
 public:
  explicit RandomPool(uint64_t seed) : random_(seed), pages_(kPages) {}

  void Operate() {
    switch (random_() % 8) {
      case 0: {
        const int64_t count = random_() % 8;
        ASSERT_EQ(pool_.Reserve(count), count <= NumAvailable());
        if (count <= NumAvailable()) reserved_ += count;
        break;
      }
      case 1: {
        const int64_t count = random_() % (reserved_ + 1);
        pool_.Unreserve(count);
        reserved_ -= count;
        break;
      }
      case 2:
      case 3:
        if (reserved_ > 0) Allocate();
        break;
      case 4:
        if (!used_.empty()) AddReference(AnyUsed());
        if (!kept_.empty() && NumAvailable() > 0) {
          AddReference(kept_[random_() % kept_.size()]);
        }
        break;
      case 5:
        if (!used_.empty()) Release(AnyUsed());
        break;
      case 6:
        if (!used_.empty()) Enter(AnyUsed());
        break;
      case 7:
        if (!used_.empty()) SetLabel(AnyUsed());
        break;
    }
  }

  void Check() const {
    int64_t by_label[3] = {};
    for (const auto& [page, use] : used_) ++by_label[use.label];
    ASSERT_EQ(pool_.num_used(), static_cast<int64_t>(used_.size()));
    ASSERT_EQ(pool_.num_reserved(), reserved_);
    ASSERT_EQ(pool_.num_available(), NumAvailable());
    ASSERT_EQ(pool_.num_cached(),
              std::min<int64_t>(kept_.size(), NumAvailable()));
    ASSERT_EQ(pool_.num_used() + pool_.num_reserved() + pool_.num_cached() +
                  pool_.num_free(),
              kPages);
    for (int label = 0; label < 3; ++label) {
      ASSERT_EQ(pool_.num_used(label), by_label[label]);
    }
    for (KvPool::PageId page = 0; page < kPages; ++page) {
      ASSERT_EQ(pool_.is_used(page), used_.contains(page));
      ASSERT_EQ(pool_.prefixes().Contains(page),
                entered_.contains(page) || private_.contains(page));
    }
  }

 private:
  static constexpr int kPages = 31;
  struct Use {
    int references;
    int label;
  };

  int64_t NumAvailable() const {
    return kPages - reserved_ - static_cast<int64_t>(used_.size());
  }
  KvPool::PageId AnyUsed() {
    return std::next(used_.begin(), random_() % used_.size())->first;
  }

  void Allocate() {
    const int label = random_() % 3;
    const bool evicts = used_.size() + kept_.size() == kPages;
    const KvPool::PageId page = pool_.Allocate(label);
    --reserved_;
    ASSERT_TRUE(page >= 0 && page < kPages);
    if (evicts) {
      ASSERT_EQ(page, kept_.front());
      kept_.erase(kept_.begin());
      entered_.erase(page);
    } else {
      ASSERT_EQ(std::ranges::count(kept_, page), 0);
    }
    ASSERT_TRUE(used_.insert({page, {1, label}}).second);
  }

  void AddReference(KvPool::PageId page) {
    const int label = random_() % 3;
    pool_.AddReference(page, label);
    const auto [it, is_new] = used_.insert({page, {0, label}});
    ++it->second.references;
    if (is_new) std::erase(kept_, page);
  }

  void Release(KvPool::PageId page) {
    pool_.Release(page);
    if (--used_[page].references > 0) return;
    used_.erase(page);
    private_.erase(page);
    if (entered_.contains(page)) kept_.push_back(page);
  }

  void Enter(KvPool::PageId page) {
    if (entered_.contains(page) || private_.contains(page)) return;
    const bool is_private = random_() % 4 == 0;
    pages_.Enter(page, is_private);
    (is_private ? private_ : entered_).insert(page);
  }

  void SetLabel(KvPool::PageId page) {
    const int label = random_() % 3;
    pool_.SetLabel(page, label);
    used_[page].label = label;
  }

  std::mt19937_64 random_;
  Pages pages_;
  KvPool& pool_ = pages_.pool;
  std::map<KvPool::PageId, Use> used_;
  std::set<KvPool::PageId> entered_, private_;
  std::vector<KvPool::PageId> kept_;  // from the one not used for longest
  int64_t reserved_ = 0;
};

TEST(KvPoolTest, RandomOperationsAgreeWithAModel) {
  constexpr uint64_t kSeed = 11;
  RandomPool pool(kSeed);
  for (int step = 0; step < 50000; ++step) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << " step " << step);
    pool.Operate();
    if (HasFatalFailure()) return;
    pool.Check();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace strata
