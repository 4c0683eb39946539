#include "kernels/cpu/thread_team.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace strata::cpu {
namespace {

TEST(ThreadTeamTest, EveryWorkerRunsOnce) {
  for (const int size : {1, 2, 3, 8}) {
    ThreadTeam team(size);
    EXPECT_EQ(team.size(), size);
    std::vector<int> calls(size);
    for (int run = 1; run <= 100; ++run) {
      team.Run([&](const Worker& worker) {
        EXPECT_EQ(worker.count, size);
        ++calls[worker.id];
      });
      EXPECT_EQ(calls, std::vector<int>(size, run));
    }
  }
}

TEST(ThreadTeamTest, TheCallerIsWorkerZero) {
  ThreadTeam team(3);
  const std::thread::id caller = std::this_thread::get_id();
  team.Run([&](const Worker& worker) {
    EXPECT_EQ(worker.id == 0, std::this_thread::get_id() == caller);
  });
}

TEST(ThreadTeamTest, SyncShowsWhatOthersWrote) {
  constexpr int kSize = 3;
  ThreadTeam team(kSize);
  std::vector<int64_t> values(kSize);
  team.Run([&](const Worker& worker) {
    for (int64_t phase = 1; phase <= 2000; ++phase) {
      values[worker.id] = phase;
      worker.Sync();
      for (const int64_t value : values) ASSERT_EQ(value, phase);
      worker.Sync();
    }
  });
}

TEST(ThreadTeamTest, WakesThreadsThatSleep) {
  ThreadTeam team(3);
  std::vector<int> calls(3);
  for (int run = 1; run <= 5; ++run) {
    // Far longer than a thread spins.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    team.Run([&](const Worker& worker) { ++calls[worker.id]; });
    EXPECT_EQ(calls, std::vector<int>(3, run));
  }
}

TEST(ThreadTeamTest, StartsAndStops) {
  for (int i = 0; i < 200; ++i) {
    ThreadTeam team(1 + i % 4);
    int sum = 0;
    if (i % 3 == 0) continue;  // stopped before any run
    team.Run([&](const Worker& worker) {
      worker.Sync();
      if (worker.id == worker.count - 1) sum = worker.count;
    });
    EXPECT_EQ(sum, team.size());
  }
}

TEST(WorkerTest, SharesCoverAllItems) {
  for (const int count : {1, 2, 3, 7}) {
    for (const int64_t n : {0, 1, 2, 5, 64, 65, 1000}) {
      for (const int64_t grain : {1, 4, 64}) {
        int64_t end = 0;
        for (int id = 0; id < count; ++id) {
          const Share share =
              Worker{.id = id, .count = count}.ShareOf(n, grain);
          EXPECT_EQ(share.begin, end);
          EXPECT_LE(share.begin, share.end);
          EXPECT_TRUE(share.end == n || share.end % grain == 0);
          end = share.end;
        }
        EXPECT_EQ(end, n);
      }
    }
  }
}

}  // namespace
}  // namespace strata::cpu
