#ifndef CORE_PREFIX_INDEX_H_
#define CORE_PREFIX_INDEX_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/types/span.h"
#include "core/sharing_strategy.h"

namespace strata {

// Which pages hold K and V of which token prefixes: the index of the prefix
// cache.
//
// K and V of leader layer l at a position depend on the tokens up to it and on
// source[0..l-1], the map below l, which we call its lineage; on nothing else.
// So a page is found by
//   (space, tokens of all blocks up to its own, lineage),
// and strategies that agree below l share the pages of l.  A space is a salt,
// or one request that shares with nobody.  Model, adapter and KV format are
// those of the process: there is one index for each.  Keys are compared whole;
// no hash decides.
//
// A trie: a node is one block of page_tokens tokens after those of its parent,
// with a page for each lineage.  Nodes and lineages are counted and go with
// their last holder.
//
// Owns no page.  Not thread-safe: the engine thread's.  Each call costs
// O(page_tokens + pages of the node).
class PrefixIndex {
 public:
  using PageId = int32_t;
  using NodeId = int32_t;
  using LineageId = int32_t;
  static constexpr int32_t kNone = -1;  // no such page, node or lineage

  // REQUIRES: page_tokens > 0; num_pages > 0.
  PrefixIndex(int page_tokens, int64_t num_pages);
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  // The node before the first block of a space, or kNone.
  NodeId FindRoot(std::string_view space) const;
  // The child of `parent` with these page_tokens tokens, or kNone.
  NodeId FindChild(NodeId parent, std::span<const int32_t> tokens) const;

  // The same, made where there is none, and held until ReleaseNode.  Pages of a
  // private space are not kept when their last user has gone (see KvPool).
  NodeId AcquireRoot(std::string_view space, bool is_private);
  NodeId AcquireChild(NodeId parent, std::span<const int32_t> tokens);
  void AcquireNode(NodeId node) { ++nodes_[node].num_holders; }
  void ReleaseNode(NodeId node);

  // Of each leader of the strategy, by slot; held until ReleaseLineages.
  std::vector<LineageId> AcquireLineages(const SharingStrategy& strategy);
  void ReleaseLineages(std::span<const LineageId> lineages);

  // The page of a lineage at `node`, or kNone.  Quick where it is entry `hint`,
  // as slots entered together are.
  PageId Find(NodeId node, LineageId lineage, int hint) const;
  // REQUIRES: the node has no page of the lineage; the page is not contained.
  void Insert(NodeId node, LineageId lineage, PageId page);
  // REQUIRES: Contains(page).
  void Erase(PageId page);

  bool Contains(PageId page) const { return node_of_[page] != kNone; }
  // REQUIRES: Contains(page).
  bool IsPrivate(PageId page) const {
    return nodes_[node_of_[page]].is_private;
  }

  int64_t num_nodes() const { return num_nodes_; }
  int num_lineages() const { return static_cast<int>(lineage_ids_.size()); }

 private:
  struct Entry {
    LineageId lineage;
    PageId page;
  };
  struct Node {
    NodeId parent = kNone;    // kNone: a root
    int32_t num_holders = 0;  // children, pages, and Acquire
    bool is_private = false;
    std::vector<Entry> pages = {};
  };
  struct Lineage {
    std::vector<int32_t> sources;
    int64_t num_holders = 0;
  };

  // A child by parent and tokens, however it is named.
  using ChildKey = std::pair<NodeId, absl::Span<const int32_t>>;
  struct ChildHash {
    using is_transparent = void;
    const PrefixIndex* index;
    size_t operator()(const ChildKey& key) const {
      return absl::Hash<ChildKey>()(key);
    }
    size_t operator()(NodeId node) const { return (*this)(index->KeyOf(node)); }
  };
  struct ChildEqual {
    using is_transparent = void;
    const PrefixIndex* index;
    ChildKey ToKey(NodeId node) const { return index->KeyOf(node); }
    ChildKey ToKey(const ChildKey& key) const { return key; }
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return ToKey(a) == ToKey(b);
    }
  };

  ChildKey KeyOf(NodeId node) const {
    return {nodes_[node].parent,
            {tokens_.data() + int64_t{node} * page_tokens_,
             static_cast<size_t>(page_tokens_)}};
  }
  NodeId NewNode(NodeId parent, bool is_private);
  void ReleaseLineage(LineageId lineage);

  const int page_tokens_;
  int64_t num_nodes_ = 0;
  std::vector<Node> nodes_;      // by id; those in free_nodes_ are unused
  std::vector<int32_t> tokens_;  // [nodes, page_tokens]; roots have none
  std::vector<NodeId> free_nodes_;
  absl::flat_hash_set<NodeId, ChildHash, ChildEqual> children_;
  absl::flat_hash_map<std::string, NodeId> roots_;
  absl::flat_hash_map<NodeId, std::string> space_of_;  // of roots

  std::vector<Lineage> lineages_;  // by id
  std::vector<LineageId> free_lineages_;
  absl::flat_hash_map<std::vector<int32_t>, LineageId> lineage_ids_;

  std::vector<NodeId> node_of_;  // by page
};

}  // namespace strata

#endif  // CORE_PREFIX_INDEX_H_
