// The part of Scheduler that changes strategies.

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/scheduler.h"

namespace strata {

void Scheduler::FollowPath(Sequence* sequence) {
  while (sequence->path.next_position() <= sequence->num_cached) {
    const StrategyPath::Step step = sequence->path.Advance();
    const int64_t freed = memory_.FollowPath(sequence);
    if (step.taken) continue;
    events_.push_back({.kind = SchedulerEvent::Kind::kSwitched,
                       .sequence = sequence,
                       .cause = step.cause,
                       .strategy = step.strategy.canonical(),
                       .position = step.position,
                       .freed_pages = freed});
  }
}

bool Scheduler::CanSwitch(const Sequence& sequence,
                          const SharingStrategy& strategy) const {
  const int64_t position = sequence.max_cached;
  if (!strategy.LeadersSubsetOf(sequence.path.StrategyAt(position))) {
    return false;
  }
  // A planned switch that falls away may have saved more.
  const auto pages = [&](const StrategyPath& path) {
    return path.PagesAhead(sequence.pages.num_blocks(),
                           sequence.request.MaxPositions(),
                           options_.page_tokens);
  };
  StrategyPath path = sequence.path;
  path.Insert(position, strategy, /*label=*/0, SwitchCause::kClient);
  return pages(path) <= pages(sequence.path);
}

int64_t Scheduler::Switch(Sequence* sequence, const SharingStrategy& strategy,
                          int label, SwitchCause cause) {
  STRATA_CHECK(sequence->state != Sequence::State::kEnded);
  const bool is_running = sequence->state == Sequence::State::kRunning;
  if (is_running) FollowPath(sequence);
  // What was run before a pre-emption is run again as it was.
  const int position = sequence->max_cached;
  if (sequence->path.StrategyAt(position) == strategy) return 0;
  sequence->path.Insert(position, strategy, label, cause);
  int64_t freed = 0;
  if (is_running) {
    const int64_t before = pool_->num_available();
    memory_.FollowPath(sequence);
    FollowPath(sequence);
    freed = pool_->num_available() - before;
  } else {
    sequence->path.Rewind();
    memory_.FollowPath(sequence);
  }
  sequence->ticket.num_needed = 0;
  sequence->ticket.retry_step = 0;
  events_.push_back({.kind = SchedulerEvent::Kind::kSwitched,
                     .sequence = sequence,
                     .cause = cause,
                     .strategy = strategy.canonical(),
                     .position = position,
                     .freed_pages = freed});
  return freed;
}

int64_t Scheduler::PagesAfterRestart(const Sequence& sequence,
                                     const SharingStrategy& strategy,
                                     int label) const {
  StrategyPath path = sequence.path;
  path.Restart(sequence.request, sequence.max_cached, strategy, label);
  return path.PagesAhead(0, sequence.request.MaxPositions(),
                         options_.page_tokens);
}

int64_t Scheduler::Restart(Sequence* sequence, const SharingStrategy& strategy,
                           int label) {
  STRATA_CHECK(sequence->state != Sequence::State::kEnded);
  const int position = sequence->max_cached;
  const int64_t before = pool_->num_available();
  sequence->path.Restart(sequence->request, position, strategy, label);
  if (sequence->state == Sequence::State::kRunning) {
    Requeue(sequence);
  } else {
    memory_.FollowPath(sequence);
    sequence->ticket.num_needed = 0;
    sequence->ticket.retry_step = 0;
  }
  const int64_t needed = sequence->path.PagesAhead(0, PromisedEnd(*sequence),
                                                   options_.page_tokens);
  const int64_t freed =
      std::max<int64_t>(0, pool_->num_available() - before - needed);
  events_.push_back({.kind = SchedulerEvent::Kind::kSwitched,
                     .sequence = sequence,
                     .cause = SwitchCause::kClient,
                     .strategy = strategy.canonical(),
                     .position = position,
                     .freed_pages = freed});
  return freed;
}

}  // namespace strata
