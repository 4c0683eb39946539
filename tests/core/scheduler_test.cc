#include "core/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/scheduler_fixture.h"

namespace strata {
namespace {

using SchedulerTest = SchedulerFixture;

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
  EXPECT_EQ(pool_->num_available(), 12);
  Step();
  EXPECT_EQ(full->state, State::kWaiting);  // 16 pages are never free with it
  scheduler_->Remove(quarter);
  Step();
  EXPECT_EQ(full->state, State::kRunning);
  scheduler_->Remove(full);
  EXPECT_EQ(pool_->num_available(), 16);
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
  EXPECT_EQ(pool_->num_available(), 100);
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
