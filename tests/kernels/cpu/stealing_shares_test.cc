#include "kernels/cpu/stealing_shares.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "kernels/cpu/thread_team.h"

namespace strata::cpu {
namespace {

TEST(StealingSharesTest, EachItemIsTakenOnce) {
  for (const int size : {1, 2, 3, 8}) {
    ThreadTeam team(size);
    StealingShares shares(size);
    for (const int64_t n : {0, 1, 2, 7, 8, 9, 24, 100, 1001}) {
      std::vector<int> taken(n);
      team.Run([&](const Worker& worker) {
        for (int run = 1; run <= 20; ++run) {
          shares.ForEach(n, worker, [&](Share share) {
            EXPECT_LT(share.begin, share.end);
            for (int64_t i = share.begin; i < share.end; ++i) ++taken[i];
          });
          worker.Sync();
          EXPECT_EQ(taken, std::vector<int>(n, run));
          worker.Sync();
        }
      });
    }
  }
}

TEST(StealingSharesTest, SizesMayChangeFromOneToTheNext) {
  constexpr int kSize = 3;
  ThreadTeam team(kSize);
  StealingShares shares(kSize);
  std::atomic<int64_t> taken = 0;
  int64_t expected = 0;
  for (int64_t n = 0; n < 500; ++n) expected += n * 37 % 101;
  team.Run([&](const Worker& worker) {
    for (int64_t n = 0; n < 500; ++n) {
      shares.ForEach(n * 37 % 101, worker,
                     [&](Share share) { taken += share.end - share.begin; });
      worker.Sync();
    }
  });
  EXPECT_EQ(taken, expected);
}

// The one that waits has taken a piece only: the others do the rest.
TEST(StealingSharesTest, OthersDoTheShareOfASlowWorker) {
  constexpr int kSize = 3;
  constexpr int64_t kItems = 300;
  ThreadTeam team(kSize);
  StealingShares shares(kSize);
  std::atomic<int64_t> taken = 0;
  std::vector<int64_t> of_worker(kSize);
  team.Run([&](const Worker& worker) {
    shares.ForEach(kItems, worker, [&](Share share) {
      const int64_t n = share.end - share.begin;
      of_worker[worker.id] += n;
      taken += n;
      if (worker.id == 1) {
        while (taken < kItems) std::this_thread::yield();
      }
    });
  });
  EXPECT_EQ(of_worker[0] + of_worker[1] + of_worker[2], kItems);
  EXPECT_LT(of_worker[1], kItems / kSize / 4);
}

}  // namespace
}  // namespace strata::cpu
