#include "core/prefix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace strata {
namespace {

using NodeId = PrefixIndex::NodeId;
using PageId = PrefixIndex::PageId;
using Tokens = std::vector<int32_t>;
constexpr auto kNone = PrefixIndex::kNone;

SharingStrategy Parse(const std::string& spec, int num_layers) {
  return *SharingStrategy::Parse(spec, num_layers);
}

TEST(PrefixIndexTest, FindsWhatWasInserted) {
  PrefixIndex index(2, 10);
  const auto lineages = index.AcquireLineages(Parse("full", 2));
  EXPECT_EQ(index.FindRoot("salt"), kNone);
  const NodeId root = index.AcquireRoot("salt", false);
  EXPECT_EQ(index.FindRoot("salt"), root);
  EXPECT_EQ(index.FindChild(root, Tokens{1, 2}), kNone);
  const NodeId child = index.AcquireChild(root, Tokens{1, 2});
  EXPECT_EQ(index.FindChild(root, Tokens{1, 2}), child);
  EXPECT_EQ(index.FindChild(root, Tokens{2, 1}), kNone);
  EXPECT_EQ(index.FindChild(child, Tokens{1, 2}), kNone);
  index.Insert(child, lineages[1], 7);
  EXPECT_TRUE(index.Contains(7));
  EXPECT_FALSE(index.IsPrivate(7));
  for (int hint = 0; hint < 3; ++hint) {
    EXPECT_EQ(index.Find(child, lineages[0], hint), kNone);
    EXPECT_EQ(index.Find(child, lineages[1], hint), 7);
    EXPECT_EQ(index.Find(root, lineages[1], hint), kNone);
  }
}

TEST(PrefixIndexTest, StrategiesShareTheLayersBelowWhichTheyAgree) {
  PrefixIndex index(4, 10);
  const auto full = index.AcquireLineages(Parse("full", 6));
  const auto prefix = index.AcquireLineages(Parse("prefix=3", 6));
  ASSERT_EQ(prefix.size(), 3u);
  for (int slot = 0; slot < 3; ++slot) EXPECT_EQ(prefix[slot], full[slot]);

  // Layer 2 of every=2 reads a layer 1 that is no leader; layer 3 leads in
  // both.
  const auto half = index.AcquireLineages(Parse("every=2", 6));
  EXPECT_EQ(half[0], full[0]);
  EXPECT_NE(half[1], full[2]);

  // Equal leaders, of which a follower between them reads another.
  const auto near = index.AcquireLineages(Parse("sources=0,1,1,3,3,3", 6));
  const auto far = index.AcquireLineages(Parse("sources=0,1,0,3,3,3", 6));
  EXPECT_EQ(near[1], far[1]);
  EXPECT_NE(near[2], far[2]);
  // What followers after the last leader read makes no difference.
  const auto after = index.AcquireLineages(Parse("sources=0,1,1,3,0,1", 6));
  EXPECT_EQ(near, after);

  for (const auto& lineages : {full, prefix, half, near, far, after}) {
    index.ReleaseLineages(lineages);
  }
  EXPECT_EQ(index.num_lineages(), 0);
}

TEST(PrefixIndexTest, SpacesAreComparedWhole) {
  PrefixIndex index(1, 10);
  const std::vector<std::string> spaces = {"",
                                           "salt",
                                           "salt ",
                                           "salt 1",
                                           "salt\0",
                                           std::string("salt\0x", 6),
                                           std::string("salt\0y", 6),
                                           std::string(1, '\0')};
  std::map<NodeId, std::string> roots;
  for (const std::string& space : spaces) {
    roots.emplace(index.AcquireRoot(space, false), space);
  }
  EXPECT_EQ(roots.size(), spaces.size() - 1);  // a literal ends at \0
  for (const auto& [root, space] : roots) {
    EXPECT_EQ(index.FindRoot(space), root);
    EXPECT_EQ(index.FindChild(root, Tokens{5}), kNone);
    index.AcquireChild(root, Tokens{5});
  }
  EXPECT_EQ(index.num_nodes(), 2 * static_cast<int64_t>(roots.size()));
}

TEST(PrefixIndexTest, NodesGoWithTheirLastHolder) {
  PrefixIndex index(1, 10);
  const auto lineages = index.AcquireLineages(Parse("full", 1));
  const NodeId root = index.AcquireRoot("", false);
  const NodeId a = index.AcquireChild(root, Tokens{1});
  const NodeId b = index.AcquireChild(a, Tokens{2});
  index.ReleaseNode(root);
  index.ReleaseNode(a);
  EXPECT_EQ(index.num_nodes(), 3);  // b is held
  index.Insert(b, lineages[0], 3);
  index.ReleaseNode(b);
  EXPECT_EQ(index.num_nodes(), 3);  // of the page
  index.ReleaseLineages(lineages);
  EXPECT_EQ(index.num_lineages(), 1);
  EXPECT_EQ(index.FindRoot(""), root);
  index.Erase(3);
  EXPECT_EQ(index.num_nodes(), 0);
  EXPECT_EQ(index.num_lineages(), 0);
  EXPECT_EQ(index.FindRoot(""), kNone);
  EXPECT_FALSE(index.Contains(3));
}

TEST(PrefixIndexTest, WhatIsUnderAPrivateRootIsPrivate) {
  PrefixIndex index(1, 10);
  const auto lineages = index.AcquireLineages(Parse("full", 1));
  const NodeId root = index.AcquireRoot("request", true);
  const NodeId a = index.AcquireChild(root, Tokens{1});
  const NodeId b = index.AcquireChild(a, Tokens{1});
  index.Insert(b, lineages[0], 0);
  EXPECT_TRUE(index.IsPrivate(0));
  // The number of a private node may be used again for one that is not.
  index.Erase(0);
  for (NodeId node : {b, a, root}) index.ReleaseNode(node);
  const NodeId other = index.AcquireRoot("salt", false);
  const NodeId child = index.AcquireChild(other, Tokens{1});
  index.Insert(child, lineages[0], 0);
  EXPECT_FALSE(index.IsPrivate(0));
}

TEST(PrefixIndexDeathTest, MisuseEndsTheProcess) {
  EXPECT_DEATH(PrefixIndex(0, 1), "CHECK");
  PrefixIndex index(2, 10);
  const auto lineages = index.AcquireLineages(Parse("full", 1));
  const NodeId root = index.AcquireRoot("", false);
  const NodeId node = index.AcquireChild(root, Tokens{1, 2});
  EXPECT_DEATH(index.FindChild(root, Tokens{1}), "CHECK");
  EXPECT_DEATH(index.Erase(3), "CHECK");
  index.Insert(node, lineages[0], 3);
  EXPECT_DEATH(index.Insert(node, lineages[0], 4), "CHECK");
  const NodeId other = index.AcquireChild(root, Tokens{1, 3});
  EXPECT_DEATH(index.Insert(other, lineages[0], 3), "CHECK");
}

// An index, and the map of keys to pages that it must be.
class RandomIndex {
 public:
  explicit RandomIndex(uint64_t seed) : random_(seed) {
    for (const char* spec : {"full", "every=2", "prefix=2", "sources=0,0,2,2",
                             "sources=0,0,2,0", "leaders=0,3", "every=4"}) {
      strategies_.push_back(Parse(spec, kLayers));
      lineages_.push_back(index_.AcquireLineages(strategies_.back()));
    }
  }

  void Operate() {
    const std::string space = kSpaces[Below(4)];
    Tokens tokens(kPageTokens * (1 + Below(4)));
    for (int32_t& token : tokens) token = Below(2);
    const int strategy = Below(strategies_.size());
    const int slot = Below(lineages_[strategy].size());
    const Key key = KeyOf(space, tokens, strategy, slot);
    const auto found = pages_.find(key);
    ASSERT_EQ(Find(space, tokens, strategy, slot),
              found != pages_.end() ? found->second : kNone);
    if (Below(3) == 0 && !pages_.empty()) {
      const auto it = std::next(pages_.begin(), Below(pages_.size()));
      index_.Erase(it->second);
      ASSERT_FALSE(index_.Contains(it->second));
      free_.push_back(it->second);
      pages_.erase(it);
    } else if (found == pages_.end() && !free_.empty()) {
      std::swap(free_[Below(free_.size())], free_.back());
      Insert(space, tokens, lineages_[strategy][slot], free_.back());
      pages_.emplace(key, free_.back());
      free_.pop_back();
    }
  }

  // All keys, and no more nodes and lineages than they need.
  void Check() {
    std::map<std::pair<std::string, Tokens>, int> nodes;
    for (const auto& [key, page] : pages_) {
      const auto& [space, tokens, sources] = key;
      ASSERT_TRUE(index_.Contains(page));
      ASSERT_EQ(index_.IsPrivate(page), space == kSpaces[3]);
      for (size_t length = 0; length <= tokens.size(); length += kPageTokens) {
        ++nodes[{space, Tokens(tokens.begin(), tokens.begin() + length)}];
      }
    }
    ASSERT_EQ(index_.num_nodes(), static_cast<int64_t>(nodes.size()));
  }

  void Clear() {
    for (const auto& [key, page] : pages_) index_.Erase(page);
    ASSERT_EQ(index_.num_nodes(), 0);
    for (const auto& lineages : lineages_) index_.ReleaseLineages(lineages);
    ASSERT_EQ(index_.num_lineages(), 0);
  }

 private:
  static constexpr int kLayers = 4;
  static constexpr int kPages = 120;
  static constexpr int kPageTokens = 2;
  static constexpr const char* kSpaces[] = {"salt ", "salt 1", "salt 11",
                                            "request 1"};
  // Space, tokens up to the end of the block, map below the layer.
  using Key = std::tuple<std::string, Tokens, Tokens>;

  int Below(size_t n) { return static_cast<int>(random_() % n); }

  Key KeyOf(const std::string& space, const Tokens& tokens, int strategy,
            int slot) const {
    const SharingStrategy& s = strategies_[strategy];
    int layer = 0;
    while (!s.is_leader(layer) || s.slot(layer) != slot) ++layer;
    const auto below = s.sources().first(layer);
    return {space, tokens, Tokens(below.begin(), below.end())};
  }

  PageId Find(const std::string& space, const Tokens& tokens, int strategy,
              int slot) {
    NodeId node = index_.FindRoot(space);
    for (auto it = tokens.begin(); it != tokens.end() && node != kNone;
         it += kPageTokens) {
      node = index_.FindChild(node, Tokens(it, it + kPageTokens));
    }
    if (node == kNone) return kNone;
    return index_.Find(node, lineages_[strategy][slot], Below(4));
  }

  void Insert(const std::string& space, const Tokens& tokens,
              PrefixIndex::LineageId lineage, PageId page) {
    NodeId node = index_.AcquireRoot(space, space == kSpaces[3]);
    for (auto it = tokens.begin(); it != tokens.end(); it += kPageTokens) {
      const NodeId parent = node;
      node = index_.AcquireChild(parent, Tokens(it, it + kPageTokens));
      index_.ReleaseNode(parent);
    }
    index_.Insert(node, lineage, page);
    index_.ReleaseNode(node);
  }

  std::mt19937_64 random_;
  PrefixIndex index_{kPageTokens, kPages};
  std::vector<SharingStrategy> strategies_;
  std::vector<std::vector<PrefixIndex::LineageId>> lineages_;
  std::map<Key, PageId> pages_;
  std::vector<PageId> free_ = [] {
    std::vector<PageId> all(kPages);
    for (PageId page = 0; page < kPages; ++page) all[page] = page;
    return all;
  }();
};

TEST(PrefixIndexTest, RandomOperationsAgreeWithAMap) {
  constexpr uint64_t kSeed = 5;
  RandomIndex index(kSeed);
  for (int step = 0; step < 40000; ++step) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << " step " << step);
    index.Operate();
    if (step % 16 == 0) index.Check();
    if (HasFatalFailure()) return;
  }
  index.Clear();
}

}  // namespace
}  // namespace strata
