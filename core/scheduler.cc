#include "core/scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "core/fit_request.h"

namespace strata {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool IsDecoding(const Sequence& sequence) {
  return sequence.num_pending() == 1 && sequence.num_generated() > 0;
}

int NumWanted(const Sequence& sequence, int num_rows) {
  if (sequence.request.kind == Request::Kind::kScore) return num_rows;
  return num_rows == sequence.num_pending() ? 1 : 0;
}

// Rows of one strategy lie together; the order within is the same in any step.
void OrderByStrategy(BatchPlan* plan) {
  const auto before = [](const BatchPlan::Chunk& a, const BatchPlan::Chunk& b) {
    const std::string& left = a.sequence->strategy.canonical();
    const std::string& right = b.sequence->strategy.canonical();
    if (&left != &right) {
      if (const int order = left.compare(right); order != 0) return order < 0;
    }
    return a.sequence->ticket.number < b.sequence->ticket.number;
  };
  std::sort(plan->chunks.begin(), plan->chunks.end(), before);
}

}  // namespace

Scheduler::Scheduler(const Options& options, KvPool* pool)
    : options_(options), pool_(pool) {
  STRATA_CHECK(options.max_sequences > 0);
  STRATA_CHECK(options.max_batched_tokens > 0);
  STRATA_CHECK(options.page_tokens > 0);
}

void Scheduler::Add(Sequence* sequence, absl::Time now) {
  STRATA_CHECK(sequence->state == Sequence::State::kWaiting ||
               sequence->state == Sequence::State::kHeld);
  STRATA_CHECK(PagesNeeded(sequence->request, options_.page_tokens) <=
               pool_->num_pages());
  const int priority =
      std::clamp(sequence->request.priority, -kMaxPriority, kMaxPriority);
  sequence->ticket = {.due = now + priority * kPriorityDelay,
                      .number = ++last_number_};
  if (sequence->state == Sequence::State::kWaiting) waiting_.insert(sequence);
}

void Scheduler::Release(Sequence* sequence, Sequence* donor) {
  STRATA_CHECK(sequence->state == Sequence::State::kHeld);
  if (donor != nullptr) {
    STRATA_CHECK(donor->state == Sequence::State::kRunning);
    STRATA_CHECK(donor->prompt_done());
    STRATA_CHECK(&donor->request == &sequence->request);
    sequence->ticket.donor = donor->ticket.number;
    donors_.emplace(donor->ticket.number, donor);
  }
  sequence->state = Sequence::State::kWaiting;
  waiting_.insert(sequence);
}

void Scheduler::Remove(Sequence* sequence) {
  if (sequence->state == Sequence::State::kWaiting) {
    STRATA_CHECK(waiting_.erase(sequence) == 1);
  } else if (sequence->state == Sequence::State::kRunning) {
    const auto it = std::find(running_.begin(), running_.end(), sequence);
    STRATA_CHECK(it != running_.end());
    running_.erase(it);
    donors_.erase(sequence->ticket.number);
    const PageTable& pages = sequence->pages;
    for (int slot = 0; slot < pages.num_slots(); ++slot) {
      for (int block = 0; block < pages.num_blocks(); ++block) {
        pool_->Release(pages.at(slot, block));
      }
    }
    pool_->Unreserve(sequence->num_reserved);
    sequence->pages = PageTable();
    sequence->num_reserved = 0;
  }
  sequence->state = Sequence::State::kEnded;
}

void Scheduler::Plan(absl::Time now, BatchPlan* plan) {
  plan->Clear();
  int budget = options_.max_batched_tokens;
  PlanDecoding(now, &budget, plan);
  while (AdmitNext() != nullptr) {
  }
  PlanPrompts(now, &budget, plan);
  OrderByStrategy(plan);
}

void Scheduler::Commit(const BatchPlan& plan) {
  for (const BatchPlan::Chunk& chunk : plan.chunks) {
    chunk.sequence->num_cached += chunk.num_rows;
  }
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

Sequence* Scheduler::AdmitNext() {
  if (num_running() == options_.max_sequences) return nullptr;
  int num_passed = 0;
  for (auto it = waiting_.begin();
       it != waiting_.end() && num_passed <= kMaxLookahead;
       ++it, ++num_passed) {
    Sequence* const sequence = *it;
    if (TryAdmit(sequence)) {
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

void Scheduler::PlanChunk(absl::Time now, Sequence* sequence, int max_rows,
                          int* budget, BatchPlan* plan) {
  const int num_rows = std::min(max_rows, sequence->num_pending());
  if (num_rows <= 0) return;  // all of it was run, and it was not removed yet
  const int64_t end = int64_t{sequence->num_cached} + num_rows;
  while (int64_t{sequence->pages.num_blocks()} * options_.page_tokens < end) {
    AllocateBlock(sequence);
  }
  UpdateHeld(sequence);
  if (sequence->first_scheduled == absl::InfinitePast()) {
    sequence->first_scheduled = now;
  }
  const int num_wanted = NumWanted(*sequence, num_rows);
  plan->chunks.push_back({sequence, num_rows, num_wanted});
  plan->num_rows += num_rows;
  plan->num_wanted += num_wanted;
  *budget -= num_rows;
}

bool Scheduler::TryAdmit(Sequence* sequence) {
  const int num_slots = sequence->strategy.num_leaders();
  const int num_blocks = static_cast<int>(
      CeilDiv(sequence->request.MaxPositions(), options_.page_tokens));
  const Sequence* const donor = FindDonor(*sequence);
  // The last position of the prompt is always run: its logits are wanted.
  const int num_shared =
      donor ? (sequence->num_prompt() - 1) / options_.page_tokens : 0;
  const int64_t num_promised = int64_t{num_slots} * (num_blocks - num_shared);
  if (!pool_->Reserve(num_promised)) return false;
  sequence->num_reserved = num_promised;
  sequence->pages = PageTable(num_slots, num_blocks);
  if (donor) ShareBlocks(*donor, num_shared, sequence);
  sequence->state = Sequence::State::kRunning;
  running_.push_back(sequence);
  return true;
}

const Sequence* Scheduler::FindDonor(const Sequence& sequence) const {
  const auto it = donors_.find(sequence.ticket.donor);
  if (it == donors_.end()) return nullptr;
  return it->second->strategy == sequence.strategy ? it->second : nullptr;
}

void Scheduler::ShareBlocks(const Sequence& donor, int num_blocks,
                            Sequence* sequence) {
  const int num_slots = sequence->pages.num_slots();
  block_.resize(num_slots);
  for (int b = 0; b < num_blocks; ++b) {
    for (int slot = 0; slot < num_slots; ++slot) {
      block_[slot] = donor.pages.at(slot, b);
      pool_->AddReference(block_[slot]);
    }
    sequence->pages.AppendBlock(block_.data());
  }
  sequence->num_reused = num_blocks * options_.page_tokens;
  sequence->num_cached = sequence->num_reused;
}

void Scheduler::AllocateBlock(Sequence* sequence) {
  const int num_slots = sequence->pages.num_slots();
  STRATA_CHECK(sequence->num_reserved >= num_slots);
  block_.resize(num_slots);
  for (KvPool::PageId& page : block_) {
    page = pool_->Allocate(sequence->request.strategy_label);
  }
  sequence->num_reserved -= num_slots;
  sequence->pages.AppendBlock(block_.data());
}

void Scheduler::UpdateHeld(Sequence* sequence) const {
  const PageTable& pages = sequence->pages;
  sequence->max_held = std::max(sequence->max_held, pages.num_pages());
  sequence->max_held_full =
      std::max(sequence->max_held_full,
               int64_t{sequence->strategy.num_layers()} * pages.num_blocks());
}

}  // namespace strata
