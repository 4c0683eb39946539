#include "core/scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "core/fit_request.h"

namespace strata {
namespace {

bool IsDecoding(const Sequence& sequence) {
  return sequence.num_pending() == 1 &&
         (sequence.num_generated() > 0 || sequence.is_sampling());
}

int NumWanted(const Sequence& sequence, int num_rows) {
  if (sequence.request.kind == Request::Kind::kScore) return num_rows;
  return num_rows == sequence.num_pending() ? 1 : 0;
}

// Rows of one strategy lie together.
void OrderByStrategy(BatchPlan* plan) {
  const auto before = [](const BatchPlan::Chunk& a, const BatchPlan::Chunk& b) {
    const int left = a.sequence->prefix.strategy->number;
    const int right = b.sequence->prefix.strategy->number;
    if (left != right) return left < right;
    return a.sequence->ticket.number < b.sequence->ticket.number;
  };
  std::sort(plan->chunks.begin(), plan->chunks.end(), before);
}

}  // namespace

Scheduler::Scheduler(const Options& options, KvPool* pool)
    : options_(options), pool_(pool), memory_(pool, options.page_tokens) {
  STRATA_CHECK(options.max_sequences > 0);
  STRATA_CHECK(options.max_batched_tokens > 0);
}

void Scheduler::Add(Sequence* sequence, absl::Time now) {
  STRATA_CHECK(sequence->state == Sequence::State::kWaiting ||
               sequence->state == Sequence::State::kHeld);
  const int64_t end = sequence->request.MaxPositions();
  if (sequence->path.PagesAhead(0, end, options_.page_tokens) >
      pool_->num_pages()) {
    sequence->path = StrategyPath(sequence->request, /*at_floor=*/true);
    STRATA_CHECK(sequence->path.PagesAhead(0, end, options_.page_tokens) <=
                 pool_->num_pages());
  }
  memory_.Enter(sequence);
  const int priority =
      std::clamp(sequence->request.priority, -kMaxPriority, kMaxPriority);
  sequence->ticket = {.due = now + priority * kPriorityDelay,
                      .number = ++last_number_};
  if (sequence->state == Sequence::State::kWaiting) waiting_.insert(sequence);
}

void Scheduler::Release(Sequence* sequence) {
  STRATA_CHECK(sequence->state == Sequence::State::kHeld);
  sequence->state = Sequence::State::kWaiting;
  waiting_.insert(sequence);
}

void Scheduler::Remove(Sequence* sequence) {
  if (sequence->state == Sequence::State::kEnded) return;
  if (sequence->state == Sequence::State::kWaiting) {
    STRATA_CHECK(waiting_.erase(sequence) == 1);
  } else if (sequence->state == Sequence::State::kRunning) {
    STRATA_CHECK(std::erase(running_, sequence) == 1);
    memory_.Release(sequence);
  }
  memory_.Leave(sequence);
  sequence->state = Sequence::State::kEnded;
}

void Scheduler::Plan(absl::Time now, BatchPlan* plan) {
  ++step_;
  num_blocks_owed_ = std::max<int64_t>(0, num_blocks_owed_ - kBlocksLookedUp);
  plan->Clear();
  for (Sequence* sequence : running_) FollowPath(sequence);
  const bool has_preempted = options_.optimistic && Grow();
  if (policy_.demote_under_pressure && IsUnderPressure()) {
    DemoteWhile([this] { return IsUnderPressure(); });
  }
  // What a pre-emption freed is not given away in the same step.
  if (!has_preempted) {
    while (AdmitNext() != nullptr) {
    }
  }
  int budget = options_.max_batched_tokens;
  PlanDecoding(now, &budget, plan);
  PlanPrompts(now, &budget, plan);
  OrderByStrategy(plan);
}

bool Scheduler::NeedsTokens() const {
  return std::ranges::any_of(running_, [](const Sequence* sequence) {
    // Penalties count the token; a planned switch is taken only if something is
    // run after it.
    return sequence->is_sampling() &&
           (sequence->request.sampling.has_penalties() ||
            sequence->path.next_position() <= sequence->num_cached);
  });
}

void Scheduler::Commit(const BatchPlan& plan) {
  int num_sampled = 0;
  for (const BatchPlan::Chunk& chunk : plan.chunks) {
    Sequence* const sequence = chunk.sequence;
    const int first_sampled = num_sampled;
    num_sampled += chunk.num_wanted;
    if (sequence->state == Sequence::State::kEnded) continue;
    if (chunk.num_wanted > 0 &&
        sequence->request.kind == Request::Kind::kGenerate) {
      sequence->sampled_as = first_sampled;
    }
    sequence->num_cached += chunk.num_rows;
    sequence->max_cached = std::max(sequence->max_cached, sequence->num_cached);
    memory_.Commit(sequence);
  }
}

void Scheduler::TakeEvents(std::vector<SchedulerEvent>* events) {
  events->clear();
  events->swap(events_);
}

void Scheduler::PlanDecoding(absl::Time now, int* budget, BatchPlan* plan) {
  for (Sequence* sequence : running_) {
    if (*budget == 0) return;
    if (IsDecoding(*sequence)) PlanChunk(now, sequence, 1, budget, plan);
  }
}

void Scheduler::PlanPrompts(absl::Time now, int* budget, BatchPlan* plan) {
  prompts_.clear();
  for (Sequence* sequence : running_) {
    if (!IsDecoding(*sequence)) prompts_.push_back(sequence);
  }
  if (prompts_.empty()) return;
  const Sequence* const oldest = prompts_[0];
  int kept_for_oldest = std::max(1, *budget / kOldestPromptShare);
  std::sort(prompts_.begin(), prompts_.end(),
            [](const Sequence* a, const Sequence* b) {
              if (a->num_pending() != b->num_pending()) {
                return a->num_pending() < b->num_pending();
              }
              return a->ticket.number < b->ticket.number;
            });
  for (Sequence* sequence : prompts_) {
    if (sequence == oldest) kept_for_oldest = 0;
    PlanChunk(now, sequence, *budget - kept_for_oldest, budget, plan);
  }
}

void Scheduler::PlanChunk(absl::Time now, Sequence* sequence, int max_rows,
                          int* budget, BatchPlan* plan) {
  // It waits for its last token, or was not removed yet.
  if (sequence->is_at_end()) return;
  // Rows of a chunk are of one strategy.
  const int64_t left =
      std::min<int64_t>(sequence->num_pending(),
                        sequence->path.next_position() - sequence->num_cached);
  const int num_rows = static_cast<int>(std::min<int64_t>(max_rows, left));
  if (num_rows <= 0) return;
  memory_.Allocate(sequence, int64_t{sequence->num_cached} + num_rows);
  if (sequence->first_scheduled == absl::InfinitePast()) {
    sequence->first_scheduled = now;
  }
  const int num_wanted = NumWanted(*sequence, num_rows);
  plan->chunks.push_back({sequence, num_rows, num_wanted});
  plan->num_rows += num_rows;
  plan->num_wanted += num_wanted;
  *budget -= num_rows;
}

}  // namespace strata
