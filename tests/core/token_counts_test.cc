#include "core/token_counts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace strata {
namespace {

TEST(TokenCountsTest, CountsWhatIsGeneratedAndListsThePrompt) {
  TokenCounts counts;
  counts.AddPrompt(std::vector<int32_t>{5, 3, 5});
  counts.AddGenerated(3);
  counts.AddGenerated(8);
  counts.AddGenerated(3);
  ASSERT_EQ(counts.counts().size(), 3u);
  const int32_t want[][2] = {{5, 0}, {3, 2}, {8, 1}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(counts.counts()[i].token, want[i][0]);
    EXPECT_EQ(counts.counts()[i].generated, want[i][1]);
  }
}

TEST(TokenCountsTest, ManyTokens) {
  std::mt19937_64 random(3);
  TokenCounts counts;
  std::map<int32_t, int> want;
  for (int i = 0; i < 20000; ++i) {
    const int32_t token = random() % 1000;
    counts.AddGenerated(token);
    ++want[token];
  }
  ASSERT_EQ(counts.counts().size(), want.size());
  for (const TokenCount& count : counts.counts()) {
    EXPECT_EQ(count.generated, want[count.token]);
  }
}

}  // namespace
}  // namespace strata
