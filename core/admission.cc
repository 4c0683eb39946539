// The part of Scheduler that gives memory: whom it admits, demotes, pre-empts.

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/scheduler.h"

namespace strata {

Sequence* Scheduler::AdmitNext() {
  if (num_running() == options_.max_sequences) return nullptr;
  int num_passed = 0;
  for (auto it = waiting_.begin();
       it != waiting_.end() && num_passed <= kMaxLookahead;
       ++it, ++num_passed) {
    Sequence* const sequence = *it;
    if (TryAdmit(sequence, it == waiting_.begin())) {
      for (auto passed = waiting_.begin(); passed != it; ++passed) {
        ++(*passed)->ticket.num_passed;
      }
      waiting_.erase(it);
      return sequence;
    }
    if (sequence->ticket.num_passed == kMaxBypass) return nullptr;
  }
  return nullptr;
}

bool Scheduler::TryAdmit(Sequence* sequence, bool is_first) {
  Sequence::Ticket& ticket = sequence->ticket;
  const int64_t num_spare = NumSpare();
  const int64_t available = pool_->num_available() - num_spare;
  const bool is_due =
      step_ >= ticket.retry_step && num_blocks_owed_ < kBlocksLookedUp;
  const bool may_fit =
      (is_due || ticket.num_needed <= available) &&
      memory_.LeastNeeded(*sequence, PromisedEnd(*sequence)) <= available;
  const bool may_demote = is_first && is_due && policy_.demote_under_pressure;
  if (!may_fit && !may_demote) return false;
  if (!memory_.Admit(sequence, PromisedEnd(*sequence), num_spare,
                     &ticket.num_needed)) {
    const int64_t num_blocks =
        static_cast<int64_t>(sequence->tokens.size()) / options_.page_tokens;
    ticket.retry_step = step_ + 1 + num_blocks * kLookUpShare / kBlocksLookedUp;
    num_blocks_owed_ += num_blocks;
    if (!may_demote || !MakeRoom(sequence, num_spare) ||
        !memory_.Admit(sequence, PromisedEnd(*sequence), num_spare,
                       &ticket.num_needed)) {
      return false;
    }
  }
  if (sequence->max_cached == 0) sequence->num_reused = sequence->num_cached;
  sequence->max_cached = std::max(sequence->max_cached, sequence->num_cached);
  sequence->state = Sequence::State::kRunning;
  running_.push_back(sequence);
  events_.push_back(
      {.kind = SchedulerEvent::Kind::kAdmitted, .sequence = sequence});
  FollowPath(sequence);
  return true;
}

bool Scheduler::MakeRoom(Sequence* sequence, int64_t num_spare) {
  for (Sequence* running : running_) FollowPath(running);
  int64_t num_short =
      sequence->ticket.num_needed + num_spare - pool_->num_available();
  const int64_t own =
      SavingAtFloor(*sequence, PromisedEnd(*sequence), options_.page_tokens);
  const std::vector<Demotion> demotions =
      FindDemotions(running_, options_.page_tokens);
  int64_t saving = own;
  for (const Demotion& demotion : demotions) saving += demotion.saving;
  if (saving < num_short) return false;  // nothing is demoted in vain
  bool may_start_lower = own > 0;
  for (const Demotion& demotion : demotions) {
    if (num_short <= 0) return true;
    if (may_start_lower && own >= demotion.saving) {
      may_start_lower = false;
      StartAtFloor(sequence);
      num_short -= own;
      if (num_short <= 0) return true;
    }
    num_short -= Demote(demotion);
  }
  if (num_short > 0 && may_start_lower) StartAtFloor(sequence);
  return true;
}

void Scheduler::StartAtFloor(Sequence* sequence) {
  sequence->path = StrategyPath(sequence->request, /*at_floor=*/true);
  memory_.FollowPath(sequence);
  if (sequence->switches.empty()) return;
  // Where a client's switch stands on record, so does what came after it.
  events_.push_back({.kind = SchedulerEvent::Kind::kSwitched,
                     .sequence = sequence,
                     .cause = SwitchCause::kPressure,
                     .strategy = sequence->strategy.canonical()});
}

int64_t Scheduler::Demote(const Demotion& demotion) {
  int64_t num_freed = 0;
  for (Sequence* sequence : demotion.sequences) {
    num_freed += Switch(sequence, *demotion.request->floor,
                        demotion.request->floor_label, SwitchCause::kPressure);
  }
  return num_freed;
}

void Scheduler::DemoteWhile(const std::function<bool()>& is_short) {
  for (const Demotion& demotion :
       FindDemotions(running_, options_.page_tokens)) {
    if (!is_short()) return;
    Demote(demotion);
  }
}

bool Scheduler::IsUnderPressure() const {
  return static_cast<double>(pool_->num_used() + pool_->num_reserved()) >
         policy_.pressure_threshold * static_cast<double>(pool_->num_pages());
}

int64_t Scheduler::PromisedEnd(const Sequence& sequence) const {
  const Request& request = sequence.request;
  const int64_t end = request.MaxPositions();
  if (!options_.optimistic || sequence.num_preemptions > 0) return end;
  const int64_t blocks = (static_cast<int64_t>(sequence.tokens.size()) +
                          options_.page_tokens - 1) /
                         options_.page_tokens;
  return std::min(end, blocks * options_.page_tokens);
}

int64_t Scheduler::NumSpare() const {
  if (!options_.optimistic) return 0;
  int64_t num_spare = 0;
  for (const Sequence* sequence : running_) {
    if (sequence->promised_end < sequence->request.MaxPositions()) {
      num_spare += sequence->strategy.num_leaders();
    }
  }
  return num_spare;
}

bool Scheduler::Grow() {
  growing_.clear();
  for (Sequence* sequence : running_) {
    if (sequence->num_cached >= sequence->promised_end) {
      growing_.push_back(sequence);
    }
  }
  std::sort(growing_.begin(), growing_.end(), ByTurn());
  bool has_preempted = false;
  for (Sequence* sequence : growing_) {
    const int64_t end =
        std::min<int64_t>(sequence->promised_end + options_.page_tokens,
                          sequence->request.MaxPositions());
    if (sequence->state != Sequence::State::kRunning) continue;
    if (sequence->num_cached >= end) continue;  // has come to its end
    const auto is_short = [&] { return !memory_.Extend(sequence, end); };
    if (policy_.demote_under_pressure && is_short()) DemoteWhile(is_short);
    while (sequence->state == Sequence::State::kRunning && is_short()) {
      Sequence* const victim = FindVictim();
      STRATA_CHECK(victim != nullptr);  // `sequence` at least
      Preempt(victim);
      has_preempted = true;
    }
  }
  return has_preempted;
}

Sequence* Scheduler::FindVictim() const {
  Sequence* victim = nullptr;
  for (Sequence* sequence : running_) {
    if (sequence->promised_end == sequence->request.MaxPositions()) continue;
    if (victim == nullptr || ByTurn()(victim, sequence)) victim = sequence;
  }
  return victim;
}

void Scheduler::Preempt(Sequence* sequence) {
  ++sequence->num_preemptions;
  Requeue(sequence);
  events_.push_back(
      {.kind = SchedulerEvent::Kind::kPreempted, .sequence = sequence});
}

void Scheduler::Requeue(Sequence* sequence) {
  STRATA_CHECK(std::erase(running_, sequence) == 1);
  memory_.Release(sequence);
  sequence->state = Sequence::State::kWaiting;
  sequence->path.Rewind();
  memory_.FollowPath(sequence);
  sequence->ticket.num_passed = 0;
  sequence->ticket.num_needed = 0;
  sequence->ticket.retry_step = 0;
  waiting_.insert(sequence);
}

}  // namespace strata
