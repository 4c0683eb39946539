#include "core/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace strata {
namespace {

using State = Sequence::State;

// A scheduler over models of 4 layers, and requests that it runs.
class SchedulerTest : public ::testing::Test {
 protected:
  void Start(Scheduler::Options options, int64_t num_pages) {
    pool_ = std::make_unique<KvPool>(num_pages);
    scheduler_ = std::make_unique<Scheduler>(options, pool_.get());
  }

  Request* NewRequest(const std::string& spec, int num_prompt, int max_tokens,
                      int priority = 0) {
    requests_.push_back(
        std::make_unique<Request>(*SharingStrategy::Parse(spec, 4)));
    Request* request = requests_.back().get();
    request->prompt.assign(num_prompt, 7);
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

  // One step; a sequence at its end is removed, as the engine does.
  void Step() {
    scheduler_->Plan(now_, &plan_);
    scheduler_->Commit(plan_);
    for (const BatchPlan::Chunk& chunk : plan_.chunks) {
      Sequence* sequence = chunk.sequence;
      if (sequence->request.kind == Request::Kind::kScore) {
        if (sequence->num_pending() == 0) scheduler_->Remove(sequence);
        continue;
      }
      if (chunk.num_wanted == 0) continue;
      sequence->tokens.push_back(1);
      if (sequence->num_generated() == sequence->request.stopping.max_tokens) {
        scheduler_->Remove(sequence);
      }
    }
  }

  // Rows of `sequence` in the latest plan.
  int RowsOf(const Sequence* sequence) const {
    for (const BatchPlan::Chunk& chunk : plan_.chunks) {
      if (chunk.sequence == sequence) return chunk.num_rows;
    }
    return 0;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::unique_ptr<KvPool> pool_;
  std::unique_ptr<Scheduler> scheduler_;
  BatchPlan plan_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

TEST_F(SchedulerTest, PromptsComeInChunksUnderTheBudget) {
  Start({.max_batched_tokens = 8}, 100);
  Sequence* a = Add("full", 5, 4);
  Sequence* b = Add("full", 10, 4);
  Step();
  EXPECT_EQ(RowsOf(a), 5);
  EXPECT_EQ(RowsOf(b), 3);
  EXPECT_EQ(plan_.num_rows, 8);
  EXPECT_EQ(plan_.num_wanted, 1);
  Step();
  EXPECT_EQ(RowsOf(a), 1);
  EXPECT_EQ(RowsOf(b), 7);
  EXPECT_EQ(plan_.num_wanted, 2);
  EXPECT_EQ(b->num_generated(), 1);
}

TEST_F(SchedulerTest, AShortPromptDoesNotWaitForALongOneNorStarvesIt) {
  Start({.max_batched_tokens = 8}, 1000);
  Sequence* old = Add("full", 100, 4);
  Step();
  EXPECT_EQ(RowsOf(old), 8);
  Sequence* a = Add("full", 5, 4);
  Sequence* b = Add("full", 50, 4);
  Step();
  EXPECT_EQ(RowsOf(a), 5);
  EXPECT_EQ(RowsOf(b), 1);
  EXPECT_EQ(RowsOf(old), 2);
  EXPECT_EQ(a->num_generated(), 1);
  Step();  // a decodes: 7 rows are left, one of them is the oldest's
  EXPECT_EQ(RowsOf(b), 6);
  EXPECT_EQ(RowsOf(old), 1);
}

TEST_F(SchedulerTest, DecodingComesBeforePrompts) {
  Start({.max_batched_tokens = 4}, 100);
  Sequence* a = Add("full", 2, 8);
  Sequence* b = Add("full", 2, 8);
  Step();
  Sequence* c = Add("full", 20, 8);
  Step();
  EXPECT_EQ(RowsOf(a), 1);
  EXPECT_EQ(RowsOf(b), 1);
  EXPECT_EQ(RowsOf(c), 2);
}

TEST_F(SchedulerTest, WhoDecodesNeverPausesHoweverSmallTheBudget) {
  Start({.max_sequences = 5, .max_batched_tokens = 2}, 100);
  for (int i = 0; i < 5; ++i) Add("full", 1 + i, 6);
  for (int i = 0; i < 5; ++i) ASSERT_NE(scheduler_->AdmitNext(), nullptr);
  for (int step = 0; scheduler_->num_running() > 0; ++step) {
    ASSERT_LT(step, 100);
    std::vector<std::pair<Sequence*, int>> decoding;
    for (Sequence* sequence : scheduler_->running()) {
      const int num_generated = sequence->num_generated();
      if (num_generated > 0) decoding.push_back({sequence, num_generated});
    }
    Step();
    for (const auto& [sequence, num_generated] : decoding) {
      EXPECT_EQ(sequence->num_generated(), num_generated + 1);
    }
  }
  for (const auto& sequence : sequences_) {
    EXPECT_EQ(sequence->num_generated(), 6);
  }
}

TEST_F(SchedulerTest, AdmitsByTheFootprintUnderTheStrategy) {
  Start({.page_tokens = 4}, 16);
  // 8 + 9 - 1 = 16 positions: 4 blocks, of 1, 2 and 4 leaders.
  Sequence* quarter = Add("every=4", 8, 9);
  Sequence* half = Add("every=2", 8, 9);
  Sequence* full = Add("full", 8, 9);
  Step();
  EXPECT_EQ(quarter->state, State::kRunning);
  EXPECT_EQ(half->state, State::kRunning);
  EXPECT_EQ(full->state, State::kWaiting);
  EXPECT_EQ(pool_->num_used(), 2 * 1 + 2 * 2);
  EXPECT_EQ(pool_->num_reserved(), 2 * 1 + 2 * 2);
  EXPECT_EQ(quarter->max_held, 2);
  EXPECT_EQ(quarter->max_held_full, 8);
  scheduler_->Remove(half);
  EXPECT_EQ(pool_->num_free(), 12);
  Step();
  EXPECT_EQ(full->state, State::kWaiting);  // 16 pages are never free with it
  scheduler_->Remove(quarter);
  Step();
  EXPECT_EQ(full->state, State::kRunning);
  scheduler_->Remove(full);
  EXPECT_EQ(pool_->num_free(), 16);
}

TEST_F(SchedulerTest, RowsOfAStrategyLieTogether) {
  Start({}, 1000);
  for (const char* spec : {"full", "every=2", "full", "every=4", "leaders=0,2",
                           "prefix=2", "every=2", "full"}) {
    Add(spec, 3, 3);
  }
  Step();
  ASSERT_EQ(plan_.chunks.size(), 8u);
  std::vector<std::string> groups;
  for (const BatchPlan::Chunk& chunk : plan_.chunks) {
    const std::string& label = chunk.sequence->strategy.canonical();
    if (groups.empty() || groups.back() != label) groups.push_back(label);
  }
  EXPECT_EQ(groups.size(), 4u);  // leaders=0,2 is every=2
}

TEST_F(SchedulerTest, ScoreWantsTheLogitsOfAllItsRows) {
  Start({.max_batched_tokens = 4}, 100);
  Request* request = NewRequest("full", 7, 0);
  request->kind = Request::Kind::kScore;
  Sequence* score = AddSequence(*request);
  Step();
  EXPECT_EQ(plan_.num_wanted, 4);
  Step();
  EXPECT_EQ(plan_.num_rows, 2);
  EXPECT_EQ(plan_.num_wanted, 2);
  EXPECT_EQ(score->state, State::kEnded);
  EXPECT_EQ(pool_->num_free(), 100);
}

TEST_F(SchedulerTest, ABlockedOneIsPassedABoundedNumberOfTimes) {
  Start({.max_sequences = 8, .page_tokens = 4}, 8);
  Sequence* first = Add("every=4", 4, 5);  // 2 pages
  Step();
  Sequence* large = Add("full", 4, 5);  // 8 pages: all there are
  for (int step = 0; large->state == State::kWaiting; ++step) {
    ASSERT_LT(step, 1000);
    Add("every=4", 4, 5);
    Step();
  }
  EXPECT_EQ(first->state, State::kEnded);
  const int num_passed = static_cast<int>(
      std::count_if(sequences_.begin() + 2, sequences_.end(),
                    [](const auto& s) { return s->state != State::kWaiting; }));
  EXPECT_EQ(num_passed, Scheduler::kMaxBypass);
}

TEST_F(SchedulerTest, LooksAtFewAfterOneThatDoesNotFit) {
  Start({.page_tokens = 4}, 8);
  Add("every=4", 4, 5);
  Step();
  for (int i = 0; i <= Scheduler::kMaxLookahead; ++i) Add("full", 4, 5);
  Sequence* small = Add("every=4", 4, 5);
  Step();
  EXPECT_EQ(small->state, State::kWaiting);
  scheduler_->Remove(sequences_[1].get());
  Step();
  EXPECT_NE(small->state, State::kWaiting);
}

TEST_F(SchedulerTest, PrioritiesOrderAndAge) {
  Start({.max_sequences = 1}, 100);
  Sequence* running = Add("full", 1, 2);
  Step();
  Sequence* late = Add("full", 1, 2, 1);
  Sequence* normal = Add("full", 1, 2);
  Sequence* urgent = Add("full", 1, 2, -5);
  // Ten seconds of age are worth one step of priority.
  now_ += absl::Seconds(11);
  Sequence* young = Add("full", 1, 2);
  const auto next = [&] {
    scheduler_->Remove(running);
    Step();
    running = scheduler_->running().at(0);
    return running;
  };
  EXPECT_EQ(next(), urgent);
  EXPECT_EQ(next(), normal);
  EXPECT_EQ(next(), late);
  EXPECT_EQ(next(), young);
}

TEST_F(SchedulerTest, TheLowestPriorityRunsInTheEnd) {
  Start({.max_sequences = 1}, 100);
  Sequence* low = Add("full", 1, 1, std::numeric_limits<int32_t>::max());
  const absl::Time begin = now_;
  while (low->state == State::kWaiting) {
    Add("full", 1, 1, std::numeric_limits<int32_t>::min());
    Step();
    now_ += absl::Seconds(1);
  }
  const int priorities = 2 * Scheduler::kMaxPriority;
  EXPECT_LE(now_ - begin,
            priorities * Scheduler::kPriorityDelay + absl::Seconds(2));
}

TEST_F(SchedulerTest, SamplesShareThePromptsWholePages) {
  Start({.page_tokens = 4}, 100);
  Request* request = NewRequest("every=2", 11, 6);  // 16 positions, 2 * 4 pages
  Sequence* first = AddSequence(*request);
  Sequence* second = AddSequence(*request, State::kHeld);
  Step();
  EXPECT_EQ(scheduler_->num_waiting(), 0);
  scheduler_->Release(second, first);
  Step();
  EXPECT_EQ(second->num_reused, 8);
  EXPECT_EQ(RowsOf(second), 3);
  EXPECT_EQ(second->num_cached, 11);
  for (int slot = 0; slot < 2; ++slot) {
    EXPECT_EQ(second->pages.at(slot, 0), first->pages.at(slot, 0));
    EXPECT_EQ(second->pages.at(slot, 1), first->pages.at(slot, 1));
    EXPECT_NE(second->pages.at(slot, 2), first->pages.at(slot, 2));
  }
  EXPECT_EQ(pool_->num_used() + pool_->num_reserved(), 8 + 4);
  EXPECT_EQ(second->max_held, 6);  // shared ones included
  scheduler_->Remove(first);
  EXPECT_EQ(pool_->num_used() + pool_->num_reserved(), 8);
  scheduler_->Remove(second);
  EXPECT_EQ(pool_->num_free(), 100);
}

TEST_F(SchedulerTest, TheLastPositionOfThePromptIsRunBySharersToo) {
  Start({.page_tokens = 4}, 100);
  Request* request = NewRequest("full", 8, 4);
  Sequence* first = AddSequence(*request);
  Sequence* second = AddSequence(*request, State::kHeld);
  Step();
  scheduler_->Release(second, first);
  Step();
  EXPECT_EQ(second->num_reused, 4);
  EXPECT_EQ(RowsOf(second), 4);
  EXPECT_EQ(second->num_generated(), 1);
}

TEST_F(SchedulerTest, ADonorThatIsGoneIsNotMissed) {
  Start({.max_sequences = 1, .page_tokens = 4}, 100);
  Request* request = NewRequest("full", 8, 4);
  Sequence* first = AddSequence(*request);
  Sequence* second = AddSequence(*request, State::kHeld);
  Step();
  scheduler_->Release(second, first);
  Step();
  EXPECT_EQ(second->state, State::kWaiting);  // no slot
  scheduler_->Remove(first);
  Step();
  EXPECT_EQ(second->num_reused, 0);
  EXPECT_EQ(RowsOf(second), 8);
}

TEST_F(SchedulerTest, RemovesInAnyState) {
  Start({.max_sequences = 1, .max_batched_tokens = 2}, 100);
  Sequence* running = Add("full", 8, 4);
  Sequence* waiting = Add("full", 8, 4);
  Sequence* held = AddSequence(waiting->request, State::kHeld);
  Step();
  for (Sequence* sequence : {held, waiting, running, running}) {
    scheduler_->Remove(sequence);
    EXPECT_EQ(sequence->state, State::kEnded);
  }
  EXPECT_EQ(scheduler_->num_running(), 0);
  EXPECT_EQ(scheduler_->num_waiting(), 0);
  EXPECT_EQ(pool_->num_free(), 100);
  Step();
  EXPECT_TRUE(plan_.empty());
}

TEST_F(SchedulerTest, FirstScheduledIsTheTimeOfTheFirstRows) {
  Start({.max_batched_tokens = 2}, 100);
  Sequence* a = Add("full", 4, 4);
  EXPECT_EQ(a->first_scheduled, absl::InfinitePast());
  const absl::Time begin = now_;
  Step();
  now_ += absl::Seconds(1);
  Step();
  EXPECT_EQ(a->first_scheduled, begin);
}

TEST_F(SchedulerTest, AdmitNextAdmitsWithoutRows) {
  Start({.max_sequences = 2}, 100);
  Sequence* a = Add("full", 4, 4);
  Sequence* b = Add("full", 4, 4);
  Add("full", 4, 4);
  EXPECT_EQ(scheduler_->AdmitNext(), a);
  EXPECT_EQ(scheduler_->AdmitNext(), b);
  EXPECT_EQ(scheduler_->AdmitNext(), nullptr);  // no slot
  EXPECT_EQ(a->first_scheduled, absl::InfinitePast());
  Step();
  EXPECT_EQ(RowsOf(a), 4);
  EXPECT_EQ(RowsOf(b), 4);
}

}  // namespace
}  // namespace strata
