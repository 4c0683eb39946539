// The part of SchedulerModel that compares.

#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_set>

#include "tests/core/scheduler_model.h"

namespace strata {

using State = Sequence::State;

// Nobody is passed more often than is allowed.
void SchedulerModel::CheckPassed(const std::set<Live*>& before,
                                 const std::set<Live*>& after) {
  for (const Live* admitted : before) {
    if (admitted->sequence->state == State::kWaiting) continue;
    for (Live* waiting : after) {
      if (!before.contains(waiting) || admitted->turn < waiting->turn) continue;
      ASSERT_LE(++waiting->num_passed, Scheduler::kMaxBypass);
    }
  }
}

void SchedulerModel::CheckPlan() {
  int num_rows = 0, num_wanted = 0;
  std::set<const Sequence*> seen;
  std::set<std::string> strategies;
  const std::string* last_strategy = nullptr;
  for (const BatchPlan::Chunk& chunk : plan_.chunks) {
    const Sequence& sequence = *chunk.sequence;
    const Trajectory& trajectory = Find(&sequence)->trajectory;
    ASSERT_TRUE(seen.insert(&sequence).second);
    ASSERT_EQ(sequence.state, State::kRunning);
    ASSERT_GE(chunk.num_rows, 1);
    ASSERT_LE(chunk.num_rows, sequence.num_pending());
    const int end = sequence.num_cached + chunk.num_rows;
    ASSERT_EQ(trajectory.StrategyAt(sequence.num_cached), sequence.strategy);
    ASSERT_EQ(trajectory.EndOfStrategy(sequence.num_cached, end), end);
    const bool last = chunk.num_rows == sequence.num_pending();
    const bool score = sequence.request.kind == Request::Kind::kScore;
    ASSERT_EQ(chunk.num_wanted, score ? chunk.num_rows : last ? 1 : 0);
    ASSERT_LE(end, sequence.pages.num_blocks() * options_.page_tokens);
    const std::string& strategy = sequence.strategy.canonical();
    if (last_strategy == nullptr || *last_strategy != strategy) {
      ASSERT_TRUE(strategies.insert(strategy).second) << "split: " << strategy;
      last_strategy = &strategy;
    }
    num_rows += chunk.num_rows;
    num_wanted += chunk.num_wanted;
  }
  ASSERT_EQ(plan_.num_rows, num_rows);
  ASSERT_EQ(plan_.num_wanted, num_wanted);
  ASSERT_LE(num_rows, options_.max_batched_tokens);
  ASSERT_LE(scheduler_.num_running(), options_.max_sequences);
  for (const Sequence* sequence : scheduler_.running()) {
    if (seen.contains(sequence)) continue;
    if (sequence->is_at_end()) {
      ASSERT_FALSE(in_flight_.empty());  // it waits for what that gives
      continue;
    }
    if (sequence->num_pending() == 1 && sequence->num_generated() > 0) {
      ASSERT_EQ(num_rows, options_.max_batched_tokens)
          << "a decoding one waits";
    }
    // What is kept for the oldest prompt may be more than it can use.
    const int kept = std::max(
        1, options_.max_batched_tokens / Scheduler::kOldestPromptShare);
    ASSERT_GT(num_rows + kept, options_.max_batched_tokens);
  }
  if (plan_.empty() && in_flight_.empty()) {
    ASSERT_EQ(scheduler_.num_running(), 0);
    ASSERT_EQ(scheduler_.num_waiting(), 0);
  }
}

// Sums, owners and promises.
void SchedulerModel::CheckPool() {
  const PrefixIndex& index = pool_.prefixes();
  std::vector<int> num_owners(pool_.num_pages());
  int64_t num_reserved = 0;
  for (const auto& live : live_) {
    CheckSequence(*live);
    const Sequence& sequence = *live->sequence;
    num_reserved += sequence.num_reserved;
    const int num_whole = sequence.num_cached / options_.page_tokens;
    for (int slot = 0; slot < sequence.pages.num_slots(); ++slot) {
      for (int block = 0; block < sequence.pages.num_blocks(); ++block) {
        const KvPool::PageId page = sequence.pages.at(slot, block);
        ++num_owners[page];
        if (block >= num_whole || !UsesIndex(sequence.request)) {
          ASSERT_FALSE(index.Contains(page));
        } else if (index.Contains(page)) {
          ASSERT_EQ(index.IsPrivate(page),
                    sequence.request.bypass_prefix_cache);
        }
      }
    }
  }
  int64_t num_used = 0, num_kept = 0;
  for (KvPool::PageId page = 0; page < pool_.num_pages(); ++page) {
    const bool contained = index.Contains(page);
    ASSERT_EQ(pool_.is_used(page), num_owners[page] > 0);
    num_used += num_owners[page] > 0;
    num_kept += contained && num_owners[page] == 0;
    if (num_owners[page] > 1) {
      ASSERT_TRUE(contained) << "shared by chance";
    }
    if (contained && num_owners[page] == 0) {
      ASSERT_FALSE(index.IsPrivate(page));
    }
  }
  const int64_t num_available = pool_.num_pages() - num_used - num_reserved;
  ASSERT_EQ(pool_.num_used(), num_used);
  ASSERT_EQ(pool_.num_reserved(), num_reserved);
  ASSERT_GE(num_available, 0);
  ASSERT_EQ(pool_.num_available(), num_available);
  ASSERT_EQ(pool_.num_cached(), std::min(num_kept, num_available));
  ASSERT_EQ(pool_.num_free(), num_available - pool_.num_cached());
  int64_t by_label = 0;
  for (int label = 0; label < 4; ++label) by_label += pool_.num_used(label);
  ASSERT_EQ(by_label, num_used);
}

void SchedulerModel::CheckSequence(const Live& live) {
  const Sequence& sequence = *live.sequence;
  const PageTable& pages = sequence.pages;
  ASSERT_EQ(sequence.max_cached, live.trajectory.length());
  ASSERT_LE(sequence.num_preemptions, options_.optimistic ? 1 : 0);
  if (sequence.state != State::kRunning) {
    ASSERT_EQ(pages.num_pages() + sequence.num_reserved, 0);
    ASSERT_EQ(sequence.num_cached, 0);
    ASSERT_EQ(sequence.strategy, live.trajectory.StrategyAt(0));
    return;
  }
  ASSERT_EQ(pages.num_slots(), sequence.strategy.num_leaders());
  ASSERT_GE(pages.num_blocks() * options_.page_tokens, sequence.num_cached);
  ASSERT_EQ(
      sequence.num_reserved,
      live.trajectory.PagesAhead(pages.num_blocks(), sequence.promised_end,
                                 options_.page_tokens));
  const int64_t end = sequence.request.MaxPositions();
  if (options_.optimistic && sequence.num_preemptions == 0) {
    ASSERT_LE(sequence.promised_end, end);
    ASSERT_GE(sequence.promised_end, sequence.num_cached);
  } else {
    ASSERT_EQ(sequence.promised_end, end);
  }
}

// Every position that was run, or is in the plan, reads what its own trajectory
// demands.
void SchedulerModel::CheckContents(bool with_planned_rows) {
  std::unordered_map<const Sequence*, int> num_planned;
  if (with_planned_rows) {
    for (const BatchPlan::Chunk& chunk : plan_.chunks) {
      num_planned[chunk.sequence] = chunk.num_rows;
    }
  }
  for (const auto& live : live_) {
    const Sequence& sequence = *live->sequence;
    const auto it = num_planned.find(&sequence);
    const int end =
        sequence.num_cached + (it != num_planned.end() ? it->second : 0);
    for (int layer = 0; layer < num_layers_ && end > 0; ++layer) {
      if (!sequence.strategy.is_leader(layer)) continue;
      const int slot = sequence.strategy.slot(layer);
      for (int p = 0; p < end; ++p) {
        ASSERT_EQ(CellAt(sequence, p, slot),
                  live->trajectory.ContentAt(p, layer))
            << "position " << p << " of layer " << layer << " of "
            << sequence.strategy.canonical();
      }
    }
  }
}

// The index has every whole block that was written under one lineage, once.
void SchedulerModel::CheckIndex() {
  for (const auto& live : live_) {
    const Sequence& sequence = *live->sequence;
    if (!UsesIndex(sequence.request)) continue;
    const int num_whole = sequence.num_cached / options_.page_tokens;
    for (int layer = 0; layer < num_layers_ && num_whole > 0; ++layer) {
      if (!sequence.strategy.is_leader(layer)) continue;
      const int slot = sequence.strategy.slot(layer);
      for (int block = 0; block < num_whole; ++block) {
        const int last = (block + 1) * options_.page_tokens - 1;
        const bool is_one = live->trajectory.IsOneLineage(last, layer);
        const KvPool::PageId page = sequence.pages.at(slot, block);
        if (!is_one || !live->trajectory.has_detour()) {
          ASSERT_EQ(pool_.prefixes().Contains(page), is_one)
              << "block " << block << " of layer " << layer;
        }
      }
    }
  }
  std::unordered_set<uint64_t> contents;
  for (KvPool::PageId page = 0; page < pool_.num_pages(); ++page) {
    if (!pool_.prefixes().Contains(page)) continue;
    ASSERT_TRUE(contents.insert(LastOf(page)).second) << "two of the same";
  }
}

// The block after those that were found is not whole in the index.
void SchedulerModel::CheckNoHitWasMissed(const Live& live) {
  const Sequence& sequence = *live.sequence;
  if (!UsesIndex(sequence.request)) return;
  if (sequence.request.kind == Request::Kind::kScore) return;
  const int end = sequence.num_cached + options_.page_tokens;
  if (end > static_cast<int>(sequence.tokens.size()) - 1) return;
  if (live.trajectory.EndOfStrategy(0, end) < end) return;
  Trajectory trajectory = live.trajectory;
  trajectory.Extend(sequence.tokens, end);
  std::unordered_set<uint64_t> contents;
  for (KvPool::PageId page = 0; page < pool_.num_pages(); ++page) {
    if (pool_.prefixes().Contains(page)) contents.insert(LastOf(page));
  }
  const SharingStrategy& strategy = trajectory.StrategyAt(0);
  bool found_all = true;
  for (int layer = 0; layer < num_layers_; ++layer) {
    if (!strategy.is_leader(layer)) continue;
    found_all &= contents.contains(trajectory.ContentAt(end - 1, layer));
  }
  ASSERT_FALSE(found_all) << "position " << end - 1 << " was in the index";
}

// Pages that the running sequence would give back at its floor.
int64_t SchedulerModel::SavingOf(const Live& live) const {
  const Sequence& sequence = *live.sequence;
  Trajectory at_floor = live.trajectory;
  at_floor.Switch(*sequence.request.floor);
  const int64_t num_blocks = sequence.pages.num_blocks();
  const auto saved = [&](int64_t end) {
    return live.trajectory.PagesAhead(num_blocks, end, options_.page_tokens) -
           at_floor.PagesAhead(num_blocks, end, options_.page_tokens);
  };
  if (saved(sequence.request.MaxPositions()) < 0) return 0;
  return num_blocks * (sequence.strategy.num_leaders() -
                       sequence.request.floor->num_leaders()) +
         saved(sequence.promised_end);
}

// Before a pre-emption all that could be demoted are.
void SchedulerModel::CheckNobodyCouldBeDemoted() {
  if (!scheduler_.policy().demote_under_pressure) return;
  for (const Sequence* sequence : scheduler_.running()) {
    const auto& floor = sequence->request.floor;
    if (!floor || sequence->is_replaying() || sequence->is_at_end()) continue;
    if (!floor->LeadersSubsetOf(sequence->strategy)) continue;
    if (*floor == sequence->strategy) continue;
    ASSERT_EQ(SavingOf(*Find(sequence)), 0) << "could have been demoted";
  }
}

void SchedulerModel::CheckIdle() {
  ASSERT_TRUE(live_.empty());
  ASSERT_EQ(scheduler_.num_running(), 0);
  ASSERT_EQ(scheduler_.num_waiting(), 0);
  ASSERT_EQ(pool_.num_used(), 0);
  ASSERT_EQ(pool_.num_reserved(), 0);
  ASSERT_EQ(pool_.num_cached() + pool_.num_free(), pool_.num_pages());
  ASSERT_TRUE(pool_.Reserve(pool_.num_pages()));
  std::set<KvPool::PageId> pages;
  while (pool_.num_reserved() > 0) {
    ASSERT_TRUE(pages.insert(pool_.Allocate(0)).second);
  }
  ASSERT_EQ(pool_.prefixes().num_nodes(), 0);
  ASSERT_EQ(pool_.prefixes().num_lineages(), 0);
}

}  // namespace strata
