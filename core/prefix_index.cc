#include "core/prefix_index.h"

#include <algorithm>

#include "base/check.h"

namespace strata {

PrefixIndex::PrefixIndex(int page_tokens, int64_t num_pages)
    : page_tokens_(page_tokens),
      children_(0, ChildHash{this}, ChildEqual{this}),
      node_of_(num_pages, kNone) {
  STRATA_CHECK(page_tokens > 0 && num_pages > 0);
}

PrefixIndex::NodeId PrefixIndex::FindRoot(std::string_view space) const {
  const auto it = roots_.find(std::string(space));
  return it != roots_.end() ? it->second : kNone;
}

PrefixIndex::NodeId PrefixIndex::FindChild(
    NodeId parent, std::span<const int32_t> tokens) const {
  STRATA_CHECK(static_cast<int>(tokens.size()) == page_tokens_);
  const auto it =
      children_.find(ChildKey{parent, {tokens.data(), tokens.size()}});
  return it != children_.end() ? *it : kNone;
}

PrefixIndex::NodeId PrefixIndex::AcquireRoot(std::string_view space,
                                             bool is_private) {
  NodeId root = FindRoot(space);
  if (root == kNone) {
    root = NewNode(kNone, is_private);
    roots_.emplace(std::string(space), root);
    space_of_.emplace(root, std::string(space));
  }
  AcquireNode(root);
  return root;
}

PrefixIndex::NodeId PrefixIndex::AcquireChild(NodeId parent,
                                              std::span<const int32_t> tokens) {
  NodeId child = FindChild(parent, tokens);
  if (child == kNone) {
    child = NewNode(parent, nodes_[parent].is_private);
    std::copy(tokens.begin(), tokens.end(),
              tokens_.begin() + int64_t{child} * page_tokens_);
    AcquireNode(parent);
    STRATA_CHECK(children_.insert(child).second);
  }
  AcquireNode(child);
  return child;
}

void PrefixIndex::ReleaseNode(NodeId node) {
  while (--nodes_[node].num_holders == 0) {
    const NodeId parent = nodes_[node].parent;
    if (parent == kNone) {
      const auto space = space_of_.find(node);
      roots_.erase(space->second);
      space_of_.erase(space);
    } else {
      children_.erase(node);
    }
    free_nodes_.push_back(node);
    --num_nodes_;
    if (parent == kNone) return;
    node = parent;
  }
}

std::vector<PrefixIndex::LineageId> PrefixIndex::AcquireLineages(
    const SharingStrategy& strategy) {
  std::vector<LineageId> acquired;
  acquired.reserve(strategy.num_leaders());
  for (int layer = 0; layer < strategy.num_layers(); ++layer) {
    if (!strategy.is_leader(layer)) continue;
    const auto below = strategy.sources().first(layer);
    const auto [it, is_new] = lineage_ids_.try_emplace(
        std::vector<int32_t>(below.begin(), below.end()), kNone);
    if (is_new) {
      if (free_lineages_.empty()) {
        free_lineages_.push_back(static_cast<LineageId>(lineages_.size()));
        lineages_.emplace_back();
      }
      it->second = free_lineages_.back();
      free_lineages_.pop_back();
      lineages_[it->second].sources = it->first;
    }
    ++lineages_[it->second].num_holders;
    acquired.push_back(it->second);
  }
  return acquired;
}

void PrefixIndex::ReleaseLineages(std::span<const LineageId> lineages) {
  for (LineageId lineage : lineages) ReleaseLineage(lineage);
}

void PrefixIndex::ReleaseLineage(LineageId lineage) {
  STRATA_CHECK(lineages_[lineage].num_holders > 0);
  if (--lineages_[lineage].num_holders > 0) return;
  lineage_ids_.erase(lineages_[lineage].sources);
  free_lineages_.push_back(lineage);
}

PrefixIndex::PageId PrefixIndex::Find(NodeId node, LineageId lineage,
                                      int hint) const {
  const std::vector<Entry>& pages = nodes_[node].pages;
  if (hint < static_cast<int>(pages.size()) && pages[hint].lineage == lineage) {
    return pages[hint].page;
  }
  for (const Entry& entry : pages) {
    if (entry.lineage == lineage) return entry.page;
  }
  return kNone;
}

void PrefixIndex::Insert(NodeId node, LineageId lineage, PageId page) {
  STRATA_CHECK(!Contains(page));
  STRATA_CHECK(Find(node, lineage, 0) == kNone);
  nodes_[node].pages.push_back({lineage, page});
  AcquireNode(node);
  ++lineages_[lineage].num_holders;
  node_of_[page] = node;
}

void PrefixIndex::Erase(PageId page) {
  const NodeId node = node_of_[page];
  STRATA_CHECK(node != kNone);
  std::vector<Entry>& pages = nodes_[node].pages;
  const auto it = std::ranges::find(pages, page, &Entry::page);
  STRATA_CHECK(it != pages.end());
  const LineageId lineage = it->lineage;
  pages.erase(it);
  node_of_[page] = kNone;
  ReleaseLineage(lineage);
  ReleaseNode(node);
}

PrefixIndex::NodeId PrefixIndex::NewNode(NodeId parent, bool is_private) {
  if (free_nodes_.empty()) {
    free_nodes_.push_back(static_cast<NodeId>(nodes_.size()));
    nodes_.emplace_back();
    tokens_.resize(tokens_.size() + page_tokens_);
  }
  const NodeId node = free_nodes_.back();
  free_nodes_.pop_back();
  ++num_nodes_;
  nodes_[node] = {.parent = parent, .is_private = is_private};
  return node;
}

}  // namespace strata
