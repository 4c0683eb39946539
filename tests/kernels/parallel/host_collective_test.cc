#include "kernels/parallel/host_collective.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>
#include <vector>

namespace strata {
namespace {

TEST(HostCollectiveTest, SumsInTheOrderOfRanks) {
  std::mt19937_64 random(1);
  // Sizes over many orders of magnitude, so that the order matters.
  std::normal_distribution<float> exponent(0.0f, 8.0f);
  for (const int num_ranks : {1, 2, 3, 5}) {
    HostCollective collective(num_ranks);
    for (const int count : {0, 1, 2, 7, 1000}) {
      SCOPED_TRACE(testing::Message() << num_ranks << " ranks, " << count);
      std::vector<std::vector<float>> x(num_ranks, std::vector<float>(count));
      for (auto& of_rank : x) {
        for (float& v : of_rank) v = std::exp2(exponent(random));
      }
      std::vector<float> want(count, 0.0f);
      for (const auto& of_rank : x) {
        for (int i = 0; i < count; ++i) want[i] += of_rank[i];
      }
      std::vector<std::thread> threads;
      for (int rank = 0; rank < num_ranks; ++rank) {
        threads.emplace_back([&, rank] {
          EXPECT_TRUE(collective.AllReduce(rank, x[rank].data(), count));
          EXPECT_EQ(x[rank], want);
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
  }
}

TEST(HostCollectiveTest, OneSumFollowsAnother) {
  constexpr int kRanks = 3, kSums = 300;
  HostCollective collective(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<float> x(10, 1.0f);
      for (int i = 0; i < kSums; ++i) {
        ASSERT_TRUE(collective.AllReduce(rank, x.data(), x.size()));
        for (float& v : x) {
          ASSERT_EQ(v, 3.0f);
          v = 1.0f;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HostCollectiveTest, AfterTheEndOfTheMeetingItFails) {
  HostCollective collective(2);
  float x = 1.0f;
  std::thread waiting([&] { EXPECT_FALSE(collective.AllReduce(0, &x, 1)); });
  collective.meeting().End();
  waiting.join();
}

}  // namespace
}  // namespace strata
