#ifndef TESTS_CORE_SCHEDULER_FIXTURE_H_
#define TESTS_CORE_SCHEDULER_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/scheduler.h"

namespace strata {

// A scheduler over models of 4 layers, and requests that it runs.
class SchedulerFixture : public ::testing::Test {
 protected:
  using State = Sequence::State;

  void Start(Scheduler::Options options, int64_t num_pages) {
    pool_ = std::make_unique<KvPool>(num_pages, options.page_tokens);
    scheduler_ = std::make_unique<Scheduler>(options, pool_.get());
  }

  static SharingStrategy Parse(const std::string& spec) {
    return *SharingStrategy::Parse(spec, 4);
  }

  // No two requests have a prompt that begins alike.
  Request* NewRequest(const std::string& spec, int num_prompt, int max_tokens,
                      int priority = 0) {
    requests_.push_back(std::make_unique<Request>(Parse(spec)));
    Request* request = requests_.back().get();
    request->prompt.assign(num_prompt, static_cast<int>(requests_.size()));
    request->stopping.max_tokens = max_tokens;
    request->priority = priority;
    return request;
  }

  Sequence* AddSequence(const Request& request, State state = State::kWaiting) {
    sequences_.push_back(std::make_unique<Sequence>(
        nullptr, request, 0, SequenceOutput(nullptr, request, {})));
    sequences_.back()->state = state;
    scheduler_->Add(sequences_.back().get(), now_);
    return sequences_.back().get();
  }

  Sequence* Add(const std::string& spec, int num_prompt, int max_tokens,
                int priority = 0) {
    return AddSequence(*NewRequest(spec, num_prompt, max_tokens, priority));
  }

  // One step; a sequence at its end is removed, as the engine does.  Tokens are
  // numbered in the order of their generation.
  void Step() {
    scheduler_->Plan(now_, &plan_);
    std::vector<SchedulerEvent> events;
    scheduler_->TakeEvents(&events);
    events_.insert(events_.end(), events.begin(), events.end());
    scheduler_->Commit(plan_);
    for (const BatchPlan::Chunk& chunk : plan_.chunks) {
      Sequence* sequence = chunk.sequence;
      if (sequence->request.kind == Request::Kind::kScore) {
        if (sequence->num_pending() == 0) scheduler_->Remove(sequence);
        continue;
      }
      if (chunk.num_wanted == 0) continue;
      sequence->Append(1000 + sequence->num_generated());
      if (sequence->num_generated() == sequence->request.stopping.max_tokens) {
        scheduler_->Remove(sequence);
      }
    }
  }
  void Step(int times) {
    for (int i = 0; i < times; ++i) Step();
  }

  // Rows of `sequence` in the latest plan.
  int RowsOf(const Sequence* sequence) const {
    for (const BatchPlan::Chunk& chunk : plan_.chunks) {
      if (chunk.sequence == sequence) return chunk.num_rows;
    }
    return 0;
  }

  // What happened to `sequence` so far, as "admitted full@0 ..." with, for a
  // switch, the strategy and its first position.
  std::string EventsOf(const Sequence* sequence) {
    std::vector<SchedulerEvent> events;
    scheduler_->TakeEvents(&events);
    events_.insert(events_.end(), events.begin(), events.end());
    std::string text;
    for (const SchedulerEvent& event : events_) {
      if (event.sequence != sequence) continue;
      if (!text.empty()) text += " ";
      if (event.kind == SchedulerEvent::Kind::kAdmitted) text += "admitted";
      if (event.kind == SchedulerEvent::Kind::kPreempted) text += "preempted";
      if (event.kind != SchedulerEvent::Kind::kSwitched) continue;
      constexpr const char* kCauses[] = {"client:", "planned:", "pressure:"};
      text += kCauses[static_cast<int>(event.cause)] + event.strategy + "@" +
              std::to_string(event.position);
    }
    return text;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::unique_ptr<KvPool> pool_;
  std::unique_ptr<Scheduler> scheduler_;
  BatchPlan plan_;
  std::vector<SchedulerEvent> events_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

}  // namespace strata

#endif  // TESTS_CORE_SCHEDULER_FIXTURE_H_
