#include "core/text/bpe_merge.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace strata {
namespace {

using Merges =
    std::map<std::pair<int32_t, int32_t>, std::pair<int32_t, int32_t>>;

// By the definition: the best pair of all, again and again.
std::vector<int32_t> MergeByDefinition(std::vector<int32_t> ids,
                                       const Merges& merges) {
  while (true) {
    size_t best = ids.size();
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = merges.find({ids[i], ids[i + 1]});
      if (found == merges.end()) continue;
      if (best == ids.size() ||
          found->second.first < merges.at({ids[best], ids[best + 1]}).first) {
        best = i;
      }
    }
    if (best == ids.size()) return ids;
    ids[best] = merges.at({ids[best], ids[best + 1]}).second;
    ids.erase(ids.begin() + best + 1);
  }
}

TEST(BpeMergeTest, EqualsTheDefinition) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    BpeMerge merge;
    Merges merges;
    for (int32_t rank = 0; rank < 30; ++rank) {
      const int32_t known =
          4 + rank;  // each merge makes an id that later ones may use
      const int32_t left = static_cast<int32_t>(random() % known);
      const int32_t right = static_cast<int32_t>(random() % known);
      merge.Add(left, right, rank, known);
      merges[{left, right}] = {rank, known};
    }
    for (const size_t length : {0, 1, 2, 31, 32, 33, 257}) {
      std::vector<int32_t> ids(length);
      for (int32_t& id : ids) id = static_cast<int32_t>(random() % 4);
      const std::vector<int32_t> want = MergeByDefinition(ids, merges);
      merge.Merge(&ids);
      EXPECT_EQ(ids, want) << "seed " << seed << ", length " << length;
    }
  }
}

TEST(BpeMergeTest, AMillionEqualLettersTakeNoQuadraticTime) {
  BpeMerge merge;
  for (int32_t i = 0; i < 4; ++i) merge.Add(i, i, i, i + 1);
  std::vector<int32_t> ids(1000001, 0);
  merge.Merge(&ids);
  EXPECT_EQ(ids.size(), 62501u);
  EXPECT_EQ(ids.front(), 4);
  EXPECT_EQ(ids.back(), 0);
}

}  // namespace
}  // namespace strata
