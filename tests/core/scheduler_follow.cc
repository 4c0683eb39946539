// The part of SchedulerModel that does what the scheduler says it has done.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/core/scheduler_model.h"

namespace strata {

using State = Sequence::State;
using ::testing::Test;

void SchedulerModel::Follow(const Live* switched,
                            const SharingStrategy* target) {
  scheduler_.TakeEvents(&events_);
  has_preempted_ = false;
  for (const SchedulerEvent& event : events_) {
    Live* const live = Find(event.sequence);
    ASSERT_NE(live, nullptr);
    if (event.kind == SchedulerEvent::Kind::kAdmitted) {
      FollowAdmission(live);
    } else if (event.kind == SchedulerEvent::Kind::kPreempted) {
      has_preempted_ = true;
      FollowPreemption(live);
    } else if (event.cause == SwitchCause::kPlanned) {
      ++seen_["planned switches"];
      ASSERT_TRUE(live->trajectory.TakePlanned(event.position, event.strategy))
          << event.strategy << " at " << event.position;
    } else {
      const SharingStrategy* to = target;
      if (event.cause == SwitchCause::kPressure) {
        ++seen_["demotions"];
        ASSERT_TRUE(scheduler_.policy().demote_under_pressure);
        ASSERT_TRUE(event.sequence->request.floor.has_value());
        ASSERT_LT(event.position, event.sequence->request.MaxPositions());
        to = &*event.sequence->request.floor;
      } else {
        ++seen_["client switches"];
        ASSERT_EQ(live, switched);
        target = nullptr;
      }
      ASSERT_NE(to, nullptr);
      ASSERT_EQ(event.strategy, to->canonical());
      ASSERT_EQ(event.position, live->trajectory.length());
      live->trajectory.Switch(*to);
    }
    if (Test::HasFatalFailure()) return;
  }
  ASSERT_EQ(target, nullptr) << "no record of the switch";
  for (const auto& live : live_) {
    if (live->sequence->state == State::kWaiting) FollowFloor(live.get());
  }
  if (has_preempted_) CheckNobodyCouldBeDemoted();
}

void SchedulerModel::FollowAdmission(Live* live) {
  const Sequence& sequence = *live->sequence;
  FollowFloor(live);
  if (live->trajectory.length() == 0) {
    seen_["positions reused"] += sequence.num_reused;
    ASSERT_EQ(sequence.num_reused, sequence.num_cached);
  } else {
    ++seen_["admitted again"];
    seen_["positions found again"] += sequence.num_cached;
  }
  live->trajectory.Extend(sequence.tokens, sequence.num_cached);
  CheckNoHitWasMissed(*live);
}

// Nobody that could have been is newer than the victim.
void SchedulerModel::FollowPreemption(Live* victim) {
  ++seen_["pre-emptions"];
  victim->num_passed = 0;
  victim->has_lost_pages = true;
  ASSERT_TRUE(options_.optimistic);
  ASSERT_EQ(victim->sequence->num_preemptions, 1);
  ASSERT_EQ(victim->sequence->state, State::kWaiting);
  for (const Sequence* sequence : scheduler_.running()) {
    if (sequence->promised_end == sequence->request.MaxPositions()) continue;
    ASSERT_LT(Find(sequence)->turn, victim->turn);
  }
}

// A sequence of which nothing was run may be at its floor.
void SchedulerModel::FollowFloor(Live* live) {
  if (live->trajectory.length() > 0) return;
  for (const SchedulerEvent& event : events_) {
    if (event.kind == SchedulerEvent::Kind::kSwitched &&
        event.sequence == live->sequence.get()) {
      return;
    }
  }
  const Request& request = live->sequence->request;
  StrategyPath path = live->sequence->path;
  path.Rewind();
  const SharingStrategy& expected = live->trajectory.StrategyAt(0);
  if (path.strategy() == expected) return;
  ++seen_["starts at the floor"];
  ASSERT_TRUE(request.floor.has_value());
  ASSERT_EQ(path.strategy(), *request.floor);
  ASSERT_TRUE(request.floor->LeadersSubsetOf(expected));
  live->trajectory.StartAtFloor();
}

}  // namespace strata
