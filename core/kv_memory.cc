#include "core/kv_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace strata {
namespace {

std::span<const int32_t> TokensOf(const Sequence& sequence, int block,
                                  int page_tokens) {
  return std::span(sequence.tokens)
      .subspan(int64_t{block} * page_tokens, page_tokens);
}

}  // namespace

KvMemory::KvMemory(KvPool* pool, int page_tokens)
    : pool_(pool),
      index_(pool->prefixes()),
      page_tokens_(page_tokens),
      strategies_(&index_) {
  STRATA_CHECK(page_tokens > 0);
}

void KvMemory::Enter(Sequence* sequence) { SetStrategy(sequence); }

void KvMemory::Leave(Sequence* sequence) {
  STRATA_CHECK(sequence->pages.num_pages() == 0);
  STRATA_CHECK(sequence->num_reserved == 0);
  strategies_.Release(sequence->prefix.strategy);
  sequence->prefix.strategy = nullptr;
}

int KvMemory::NumMatchableBlocks(const Sequence& sequence) const {
  if (sequence.request.kind == Request::Kind::kScore) return 0;
  if (!UsesIndex(sequence)) return 0;
  const int64_t end =
      std::min<int64_t>(static_cast<int64_t>(sequence.tokens.size()) - 1,
                        sequence.path.next_position());
  return static_cast<int>(end / page_tokens_);
}

int64_t KvMemory::LeastNeeded(const Sequence& sequence, int64_t end) const {
  return sequence.path.PagesAhead(NumMatchableBlocks(sequence), end,
                                  page_tokens_);
}

int KvMemory::FindPrefix(const Sequence& sequence, PrefixIndex::NodeId* last) {
  matched_.clear();
  const int most = NumMatchableBlocks(sequence);
  if (most == 0) return 0;
  PrefixIndex::NodeId node = index_.FindRoot(SpaceOf(sequence));
  const auto& lineages = sequence.prefix.strategy->lineages;
  const int num_slots = static_cast<int>(lineages.size());
  for (int block = 0; block < most && node != PrefixIndex::kNone; ++block) {
    node = index_.FindChild(node, TokensOf(sequence, block, page_tokens_));
    if (node == PrefixIndex::kNone) return block;
    for (int slot = 0; slot < num_slots; ++slot) {
      const KvPool::PageId page = index_.Find(node, lineages[slot], slot);
      if (page == PrefixIndex::kNone) {
        matched_.resize(static_cast<size_t>(block) * num_slots);
        return block;
      }
      matched_.push_back(page);
    }
    *last = node;
  }
  return static_cast<int>(matched_.size()) / num_slots;
}

bool KvMemory::Admit(Sequence* sequence, int64_t end, int64_t num_spare,
                     int64_t* num_needed) {
  STRATA_CHECK(sequence->pages.num_pages() == 0);
  STRATA_CHECK(sequence->num_reserved == 0);
  PrefixIndex::NodeId found = PrefixIndex::kNone;
  const int num_found = FindPrefix(*sequence, &found);
  const int64_t ahead = sequence->path.PagesAhead(num_found, end, page_tokens_);
  const int64_t num_unused = std::ranges::count_if(
      matched_, [&](KvPool::PageId page) { return !pool_->is_used(page); });
  *num_needed = ahead + num_unused;
  if (*num_needed + num_spare > pool_->num_available()) return false;

  const int64_t num_blocks =
      (sequence->request.MaxPositions() + page_tokens_ - 1) / page_tokens_;
  const int num_slots = sequence->strategy.num_leaders();
  sequence->pages = PageTable(num_slots, static_cast<int>(num_blocks));
  for (int block = 0; block < num_found; ++block) {
    const KvPool::PageId* pages = matched_.data() + int64_t{block} * num_slots;
    for (int slot = 0; slot < num_slots; ++slot) {
      pool_->AddReference(pages[slot], sequence->strategy_label);
    }
    sequence->pages.AppendBlock(pages);
  }
  STRATA_CHECK(pool_->Reserve(ahead));
  sequence->num_reserved = ahead;
  sequence->promised_end = end;
  sequence->num_cached = num_found * page_tokens_;
  UpdateHeld(sequence);

  Sequence::PrefixPlace& prefix = sequence->prefix;
  prefix.lineages = prefix.strategy->lineages;
  prefix.num_blocks = num_found;
  if (!UsesIndex(*sequence)) return true;
  if (num_found > 0) {
    index_.AcquireNode(found);
    prefix.node = found;
  } else {
    prefix.node = index_.AcquireRoot(SpaceOf(*sequence),
                                     sequence->request.bypass_prefix_cache);
  }
  return true;
}

bool KvMemory::Extend(Sequence* sequence, int64_t end) {
  if (end <= sequence->promised_end) return true;
  const int64_t more = sequence->path.PagesAhead(sequence->pages.num_blocks(),
                                                 end, page_tokens_) -
                       sequence->num_reserved;
  if (!pool_->Reserve(more)) return false;
  sequence->num_reserved += more;
  sequence->promised_end = end;
  return true;
}

void KvMemory::Allocate(Sequence* sequence, int64_t end) {
  STRATA_CHECK(end <= sequence->promised_end);
  PageTable& pages = sequence->pages;
  if (int64_t{pages.num_blocks()} * page_tokens_ >= end) return;
  const int num_slots = pages.num_slots();
  block_.resize(num_slots);
  while (int64_t{pages.num_blocks()} * page_tokens_ < end) {
    STRATA_CHECK(sequence->num_reserved >= num_slots);
    for (KvPool::PageId& page : block_) {
      page = pool_->Allocate(sequence->strategy_label);
    }
    sequence->num_reserved -= num_slots;
    pages.AppendBlock(block_.data());
  }
}

void KvMemory::Commit(Sequence* sequence) {
  UpdateHeld(sequence);
  EnterPrefix(sequence);
}

void KvMemory::EnterPrefix(Sequence* sequence) {
  Sequence::PrefixPlace& prefix = sequence->prefix;
  if (prefix.node == PrefixIndex::kNone) return;
  const int num_whole = sequence->num_cached / page_tokens_;
  for (; prefix.num_blocks < num_whole; ++prefix.num_blocks) {
    const PrefixIndex::NodeId parent = prefix.node;
    prefix.node = index_.AcquireChild(
        parent, TokensOf(*sequence, prefix.num_blocks, page_tokens_));
    index_.ReleaseNode(parent);
    EnterBlock(sequence, prefix.num_blocks);
  }
}

void KvMemory::EnterBlock(Sequence* sequence, int block) {
  const Sequence::PrefixPlace& prefix = sequence->prefix;
  for (int slot = 0; slot < sequence->pages.num_slots(); ++slot) {
    const PrefixIndex::LineageId lineage = prefix.lineages[slot];
    if (lineage == PrefixIndex::kNone) continue;
    const KvPool::PageId own = sequence->pages.at(slot, block);
    const KvPool::PageId known = index_.Find(prefix.node, lineage, slot);
    if (known == PrefixIndex::kNone) {
      index_.Insert(prefix.node, lineage, own);
    } else {
      // Nobody else refers to `own`, which only the index could have told of.
      pool_->Release(own);
      pool_->AddReference(known, sequence->strategy_label);
      sequence->pages.Set(slot, block, known);
    }
  }
}

int64_t KvMemory::FollowPath(Sequence* sequence) {
  const SharingStrategy before = sequence->strategy;
  SetStrategy(sequence);
  if (sequence->state != Sequence::State::kRunning) return 0;
  const int64_t available_before = pool_->num_available();
  if (!(sequence->strategy == before)) DropLeaders(before, sequence);
  const int64_t ahead = sequence->path.PagesAhead(
      sequence->pages.num_blocks(), sequence->promised_end, page_tokens_);
  pool_->Unreserve(sequence->num_reserved - ahead);
  sequence->num_reserved = ahead;
  return pool_->num_available() - available_before;
}

void KvMemory::DropLeaders(const SharingStrategy& before, Sequence* sequence) {
  const SharingStrategy& after = sequence->strategy;
  std::vector<int> kept;
  std::vector<PrefixIndex::LineageId> lineages;
  for (int layer = 0; layer < after.num_layers(); ++layer) {
    if (!after.is_leader(layer)) continue;
    const int slot = before.slot(layer);
    kept.push_back(slot);
    // What comes is of one lineage only if nothing changed below.
    const bool same_below = std::ranges::equal(before.sources().first(layer),
                                               after.sources().first(layer));
    lineages.push_back(same_below ? sequence->prefix.lineages[slot]
                                  : PrefixIndex::kNone);
  }
  PageTable& pages = sequence->pages;
  // The last block first: so the first ones, without which the others are
  // useless, stay longest in the index.
  for (int block = pages.num_blocks(); block-- > 0;) {
    auto next_kept = kept.begin();
    for (int slot = 0; slot < pages.num_slots(); ++slot) {
      if (next_kept != kept.end() && *next_kept == slot) {
        ++next_kept;
        pool_->SetLabel(pages.at(slot, block), sequence->strategy_label);
      } else {
        pool_->Release(pages.at(slot, block));
      }
    }
  }
  pages.KeepSlots(kept);
  sequence->prefix.lineages = sequence->num_cached > 0
                                  ? std::move(lineages)
                                  : sequence->prefix.strategy->lineages;
}

void KvMemory::Release(Sequence* sequence) {
  const PageTable& pages = sequence->pages;
  for (int block = pages.num_blocks(); block-- > 0;) {
    for (int slot = 0; slot < pages.num_slots(); ++slot) {
      pool_->Release(pages.at(slot, block));
    }
  }
  pool_->Unreserve(sequence->num_reserved);
  sequence->pages = PageTable();
  sequence->num_reserved = 0;
  sequence->promised_end = 0;
  sequence->num_cached = 0;
  if (sequence->prefix.node != PrefixIndex::kNone) {
    index_.ReleaseNode(sequence->prefix.node);
    sequence->prefix.node = PrefixIndex::kNone;
  }
}

void KvMemory::SetStrategy(Sequence* sequence) {
  sequence->strategy = sequence->path.strategy();
  sequence->strategy_label = sequence->path.label();
  const LiveStrategy* const before = sequence->prefix.strategy;
  sequence->prefix.strategy = strategies_.Acquire(sequence->strategy);
  if (before != nullptr) strategies_.Release(before);
}

void KvMemory::UpdateHeld(Sequence* sequence) const {
  const PageTable& pages = sequence->pages;
  sequence->max_held = std::max(sequence->max_held, pages.num_pages());
  sequence->max_held_full =
      std::max(sequence->max_held_full,
               int64_t{sequence->strategy.num_layers()} * pages.num_blocks());
}

bool KvMemory::UsesIndex(const Sequence& sequence) const {
  return !sequence.request.bypass_prefix_cache ||
         sequence.request.num_sequences > 1;
}

std::string KvMemory::SpaceOf(const Sequence& sequence) const {
  // The tag keeps the two kinds apart whatever the salt is.  A private space
  // lives no longer than its request, so the address is its own.
  const Request& request = sequence.request;
  return request.bypass_prefix_cache
             ? absl::StrCat("request ", reinterpret_cast<uintptr_t>(&request))
             : absl::StrCat("salt ", request.cache_salt);
}

}  // namespace strata
