#include "tests/core/scheduler_model.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace strata {

using State = Sequence::State;
using ::testing::Test;

SchedulerModel::SchedulerModel(const Scheduler::Options& options,
                               int num_layers, int64_t num_pages,
                               bool runs_ahead)
    : options_(options),
      num_layers_(num_layers),
      runs_ahead_(runs_ahead),
      pool_(num_pages, options.page_tokens),
      scheduler_(options, &pool_),
      cells_(num_pages * options.page_tokens) {}

bool SchedulerModel::Fits(const Request& request) const {
  Trajectory trajectory(request, 0);
  const auto fits = [&] {
    return trajectory.PagesAhead(0, request.MaxPositions(),
                                 options_.page_tokens) <= pool_.num_pages();
  };
  if (fits()) return true;
  if (!request.floor) return false;
  trajectory.StartAtFloor();
  return fits();
}

void SchedulerModel::Add(std::unique_ptr<Request> request) {
  requests_.push_back(std::move(request));
  const Request& added = *requests_.back();
  events_.clear();
  for (int i = 0; i < added.num_sequences; ++i) {
    live_.push_back(std::make_unique<Live>(
        Live{.sequence = std::make_unique<Sequence>(
                 nullptr, added, i, SequenceOutput(nullptr, added, {})),
             .trajectory = Trajectory(added, SpaceOf(added)),
             .turn = {now_ + std::clamp(added.priority, -100, 100) *
                                 Scheduler::kPriorityDelay,
                      ++num_added_}}));
    Live* const live = live_.back().get();
    Sequence* const sequence = live->sequence.get();
    by_sequence_.emplace(sequence, live);
    sequence->state = i == 0 ? State::kWaiting : State::kHeld;
    scheduler_.Add(sequence, now_);
    FollowFloor(live);
  }
}

void SchedulerModel::Remove(Live* live) {
  Sequence* const sequence = live->sequence.get();
  const Request& request = sequence->request;
  const bool releases = sequence->index == 0 && sequence->num_generated() == 0;
  scheduler_.Remove(sequence);
  ASSERT_EQ(sequence->state, State::kEnded);
  last_tokens_ = sequence->tokens;
  by_sequence_.erase(sequence);
  const auto it = std::ranges::find(live_, live, &std::unique_ptr<Live>::get);
  ended_.push_back(std::move(*it));
  live_.erase(it);
  if (releases) ReleaseSamples(request);
}

void SchedulerModel::ReleaseSamples(const Request& request) {
  for (const auto& live : live_) {
    Sequence* const sequence = live->sequence.get();
    if (&sequence->request == &request && sequence->state == State::kHeld) {
      scheduler_.Release(sequence);
    }
  }
}

void SchedulerModel::AdmitNext() {
  const std::set<Live*> before = Waiting();
  const Live* first = nullptr;
  for (const Live* live : before) {
    if (first == nullptr || live->turn < first->turn) first = live;
  }
  const bool has_room = scheduler_.num_running() < options_.max_sequences &&
                        first != nullptr && !options_.optimistic &&
                        first->trajectory.PagesAhead(
                            0, first->sequence->request.MaxPositions(),
                            options_.page_tokens) <= pool_.num_available();
  Sequence* const admitted = scheduler_.AdmitNext();
  Follow();
  if (Test::HasFatalFailure()) return;
  if (has_room) {
    ASSERT_EQ(admitted, first->sequence.get());
    ASSERT_FALSE(HasPressureEvent()) << "the first one fitted";
  }
  const std::set<Live*> after = Waiting();
  ASSERT_EQ(before.size() - after.size(), admitted != nullptr ? 1u : 0u);
  CheckPassed(before, after);
  CheckPool();
}

bool SchedulerModel::Switch(Live* live, const SharingStrategy& strategy) {
  Sequence* const sequence = live->sequence.get();
  const Trajectory& trajectory = live->trajectory;
  const int position = trajectory.length();
  const bool is_same = trajectory.StrategyAt(position) == strategy;
  Trajectory after = trajectory;
  if (!is_same) after.Switch(strategy);
  const auto pages = [&](const Trajectory& t) {
    return t.PagesAhead(sequence->pages.num_blocks(),
                        sequence->request.MaxPositions(), options_.page_tokens);
  };
  const bool can_switch =
      strategy.LeadersSubsetOf(trajectory.StrategyAt(position)) &&
      pages(after) <= pages(trajectory);
  EXPECT_EQ(scheduler_.CanSwitch(*sequence, strategy), can_switch);
  if (!can_switch) return false;
  const int64_t available = pool_.num_available();
  const int64_t freed =
      scheduler_.Switch(sequence, strategy, 0, SwitchCause::kClient);
  Follow(live, is_same ? nullptr : &strategy);
  const int64_t more = pool_.num_available() - available;
  EXPECT_LE(freed, more);
  if (live->has_lost_pages) {
    // It may have come to a switch again, of which there is a record already.
    EXPECT_LE(FreedBySwitches(), more);
  } else {
    EXPECT_EQ(FreedBySwitches(), more);
  }
  EXPECT_EQ(trajectory.StrategyAt(position), strategy);
  CheckPool();
  return true;
}

bool SchedulerModel::Restart(Live* live, const SharingStrategy& strategy) {
  Sequence* const sequence = live->sequence.get();
  Trajectory after = live->trajectory;
  after.Restart(sequence->tokens, strategy);
  const int64_t num_pages = after.PagesAhead(
      0, sequence->request.MaxPositions(), options_.page_tokens);
  EXPECT_EQ(scheduler_.PagesAfterRestart(*sequence, strategy, 0), num_pages);
  if (num_pages > pool_.num_pages()) return false;
  if (sequence->state == State::kRunning) {
    live->num_passed = 0;
    live->has_lost_pages = true;
  }
  scheduler_.Restart(sequence, strategy, 0);
  EXPECT_NE(sequence->state, State::kRunning);
  Follow(live, &strategy);
  live->trajectory = std::move(after);
  CheckPool();
  return true;
}

void SchedulerModel::SetPolicy(const PressurePolicy& policy) {
  scheduler_.SetPolicy(policy);
}

void SchedulerModel::Step(absl::Duration elapsed) {
  if (scheduler_.NeedsTokens()) Deliver();
  now_ += elapsed;
  const std::set<Live*> before = Waiting();
  const bool has_pressure =
      options_.optimistic || !before.empty() ||
      static_cast<double>(pool_.num_used() + pool_.num_reserved()) >
          scheduler_.policy().pressure_threshold *
              static_cast<double>(pool_.num_pages());
  scheduler_.Plan(now_, &plan_);
  Follow();
  if (Test::HasFatalFailure()) return;
  if (!has_pressure) {
    ASSERT_FALSE(HasPressureEvent());
  }
  if (has_preempted_) {
    ASSERT_FALSE(HasEvent(SchedulerEvent::Kind::kAdmitted));
  }
  CheckPassed(before, Waiting());
  CheckPlan();
  CheckPool();
  if (Test::HasFatalFailure()) return;
  const std::vector<std::vector<uint64_t*>> cells = PlannedCells();
  Deliver();
  for (size_t i = 0; i < cells.size(); ++i) {
    if (Find(plan_.chunks[i].sequence) != nullptr) continue;
    ++seen_["wasted rows"];
    for (uint64_t* cell : cells[i]) *cell = 0;
  }
  for (const SchedulerEvent& event : events_) {
    if (event.kind != SchedulerEvent::Kind::kSwitched) continue;
    if (event.cause != SwitchCause::kPlanned) continue;
    ASSERT_NE(Find(event.sequence), nullptr) << "nothing is run after a switch";
  }
  WriteRows();
  CheckContents(/*with_planned_rows=*/true);
  if (Test::HasFatalFailure()) return;
  scheduler_.Commit(plan_);
  in_flight_ = plan_;
  if (!runs_ahead_) Deliver();
  CheckPool();
  CheckContents(/*with_planned_rows=*/false);
  CheckIndex();
  std::erase_if(ended_, [this](const auto& ended) {
    return std::ranges::find(in_flight_.chunks, ended->sequence.get(),
                             &BatchPlan::Chunk::sequence) ==
           in_flight_.chunks.end();
  });
  ++seen_["steps"];
}

void SchedulerModel::Deliver() {
  for (const BatchPlan::Chunk& chunk : in_flight_.chunks) Deliver(chunk);
  in_flight_.Clear();
}

void SchedulerModel::Deliver(const BatchPlan::Chunk& chunk) {
  Live* const live = Find(chunk.sequence);
  if (live == nullptr) return;
  Sequence* const sequence = chunk.sequence;
  const Request& request = sequence->request;
  if (request.kind == Request::Kind::kScore) {
    if (sequence->num_pending() == 0) Remove(live);
    return;
  }
  if (chunk.num_wanted == 0) return;
  // Of seed 0, the token depends on the strategies too; else sequences of
  // unequal trajectories have equal tokens.
  const uint64_t logits =
      request.sampling.seed == 0
          ? live->trajectory.ContentAt(sequence->max_cached - 1, num_layers_)
          : sequence->max_cached;
  const uint64_t sampled = Mix(logits, request.sampling.seed + sequence->index);
  sequence->Append(static_cast<int32_t>(sampled % 40));
  const bool ends = sampled / 40 % 30 == 0 ||
                    sequence->num_generated() == request.stopping.max_tokens;
  if (sequence->index == 0 && sequence->num_generated() == 1) {
    ReleaseSamples(request);
  }
  if (ends) Remove(live);
}

// Where the plan's rows are written, by chunk.
std::vector<std::vector<uint64_t*>> SchedulerModel::PlannedCells() {
  std::vector<std::vector<uint64_t*>> cells(plan_.chunks.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    const Sequence& sequence = *plan_.chunks[i].sequence;
    for (int row = 0; row < plan_.chunks[i].num_rows; ++row) {
      for (int slot = 0; slot < sequence.pages.num_slots(); ++slot) {
        cells[i].push_back(&CellAt(sequence, sequence.num_cached + row, slot));
      }
    }
  }
  return cells;
}

void SchedulerModel::WriteRows() {
  for (const BatchPlan::Chunk& chunk : plan_.chunks) {
    const Sequence& sequence = *chunk.sequence;
    Live* const live = Find(&sequence);
    if (live == nullptr) continue;
    const int end = sequence.num_cached + chunk.num_rows;
    live->trajectory.Extend(sequence.tokens, end);
    for (int layer = 0; layer < num_layers_; ++layer) {
      if (!sequence.strategy.is_leader(layer)) continue;
      const int slot = sequence.strategy.slot(layer);
      for (int p = sequence.num_cached; p < end; ++p) {
        const KvPool::PageId page =
            sequence.pages.at(slot, p / options_.page_tokens);
        ASSERT_FALSE(pool_.prefixes().Contains(page))
            << "writes what is shared";
        CellAt(sequence, p, slot) = live->trajectory.ContentAt(p, layer);
      }
    }
  }
}

int64_t SchedulerModel::FreedBySwitches() const {
  int64_t freed = 0;
  for (const SchedulerEvent& event : events_) freed += event.freed_pages;
  return freed;
}

bool SchedulerModel::HasEvent(SchedulerEvent::Kind kind) const {
  return std::ranges::count(events_, kind, &SchedulerEvent::kind) > 0;
}

bool SchedulerModel::HasPressureEvent() const {
  return std::ranges::any_of(events_, [](const SchedulerEvent& event) {
    return event.kind == SchedulerEvent::Kind::kSwitched &&
           event.cause == SwitchCause::kPressure;
  });
}

SchedulerModel::Live* SchedulerModel::Find(const Sequence* sequence) {
  const auto it = by_sequence_.find(sequence);
  return it != by_sequence_.end() ? it->second : nullptr;
}

std::set<SchedulerModel::Live*> SchedulerModel::Waiting() const {
  std::set<Live*> waiting;
  for (const auto& live : live_) {
    if (live->sequence->state == State::kWaiting) waiting.insert(live.get());
  }
  return waiting;
}

bool SchedulerModel::UsesIndex(const Request& request) const {
  return !request.bypass_prefix_cache || request.num_sequences > 1;
}

uint64_t SchedulerModel::SpaceOf(const Request& request) {
  if (request.bypass_prefix_cache) return 1000000 + requests_.size();
  return spaces_.emplace(request.cache_salt, spaces_.size()).first->second;
}

uint64_t& SchedulerModel::CellAt(const Sequence& sequence, int position,
                                 int slot) {
  const KvPool::PageId page =
      sequence.pages.at(slot, position / options_.page_tokens);
  return cells_[page * int64_t{options_.page_tokens} +
                position % options_.page_tokens];
}

}  // namespace strata
