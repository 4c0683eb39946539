#include "kernels/parallel/meeting.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace strata {
namespace {

TEST(MeetingTest, EachRankSeesTheFlagsOfAllAndWhatTheyWrote) {
  constexpr int kRanks = 4, kRounds = 200;
  Meeting meeting(kRanks);
  int written[kRanks] = {};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      for (int round = 0; round < kRounds; ++round) {
        written[rank] = round;
        // One rank a round raises its flag.
        const uint32_t flag = round % kRanks == rank ? 1u << rank : 0;
        EXPECT_EQ(meeting.Meet(flag), 1u << round % kRanks);
        for (const int of_rank : written) EXPECT_EQ(of_rank, round);
        EXPECT_EQ(meeting.Meet(), 0u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(MeetingTest, AfterItsEndNobodyWaits) {
  Meeting meeting(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&] { EXPECT_EQ(meeting.Meet(1), Meeting::kEnded); });
  }
  meeting.End();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(meeting.Meet(), Meeting::kEnded);
  meeting.End();
}

}  // namespace
}  // namespace strata
