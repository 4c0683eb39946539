// Changes of strategy that clients ask for or plan.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/core/scheduler_fixture.h"

namespace strata {
namespace {

class SchedulerSwitchTest : public SchedulerFixture {
 protected:
  int64_t Switch(Sequence* sequence, const std::string& spec) {
    return scheduler_->Switch(sequence, Parse(spec), 3, SwitchCause::kClient);
  }
};

TEST_F(SchedulerSwitchTest, PagesAndPromisesOfDroppedLeadersAreFreeAtOnce) {
  Start({.page_tokens = 4}, 100);
  Sequence* sequence = Add("full", 8, 9);  // 16 positions, 4 blocks
  Step();
  EXPECT_EQ(pool_->num_used(), 8);
  EXPECT_EQ(pool_->num_reserved(), 8);
  const KvPool::PageId kept = sequence->pages.at(2, 1);
  EXPECT_EQ(Switch(sequence, "every=2"), 8);
  EXPECT_EQ(pool_->num_used(), 4);
  EXPECT_EQ(pool_->num_used(3), 4);  // under the new label
  EXPECT_EQ(pool_->num_reserved(), 4);
  EXPECT_EQ(sequence->strategy, Parse("every=2"));
  EXPECT_EQ(sequence->strategy_label, 3);
  EXPECT_EQ(sequence->pages.at(1, 1), kept);
  EXPECT_EQ(sequence->num_cached, 8);  // nothing is run again
  Step();
  EXPECT_EQ(RowsOf(sequence), 1);
  EXPECT_EQ(EventsOf(sequence), "admitted client:every=2@8");
  EXPECT_EQ(sequence->max_held, 8);
  Step(7);
  EXPECT_EQ(sequence->state, State::kEnded);
}

TEST_F(SchedulerSwitchTest, InTheMiddleOfThePromptAndOfABlock) {
  Start({.max_batched_tokens = 6, .page_tokens = 4}, 100);
  Sequence* sequence = Add("full", 16, 1);
  Step();
  EXPECT_EQ(Switch(sequence, "prefix=2"), 2 * 2 + 2 * 2);
  Step(2);
  EXPECT_EQ(sequence->state, State::kEnded);
  EXPECT_EQ(EventsOf(sequence), "admitted client:prefix=2@6");
}

TEST_F(SchedulerSwitchTest, TheSameStrategyIsNoSwitch) {
  Start({}, 100);
  Sequence* sequence = Add("every=2", 8, 9);
  EXPECT_EQ(Switch(sequence, "leaders=0,2"), 0);
  Step();
  EXPECT_EQ(Switch(sequence, "sources=0,0,2,2"), 0);
  EXPECT_EQ(EventsOf(sequence), "admitted");
}

TEST_F(SchedulerSwitchTest, OnlyToASubsetOfLeaders) {
  Start({}, 100);
  Sequence* sequence = Add("every=2", 8, 9);
  EXPECT_TRUE(scheduler_->CanSwitch(*sequence, Parse("every=4")));
  EXPECT_TRUE(scheduler_->CanSwitch(*sequence, Parse("sources=0,0,2,0")));
  EXPECT_FALSE(scheduler_->CanSwitch(*sequence, Parse("full")));
  EXPECT_FALSE(scheduler_->CanSwitch(*sequence, Parse("leaders=0,3")));
}

TEST_F(SchedulerSwitchTest, NotIfADroppedPlannedSwitchWouldHaveSavedMore) {
  Start({.page_tokens = 4}, 100);
  Request* request = NewRequest("full", 8, 33);
  request->switches.push_back(
      {.after_generated = 4, .strategy = Parse("leaders=0,3")});
  Sequence* sequence = AddSequence(*request);
  Step();
  EXPECT_FALSE(scheduler_->CanSwitch(*sequence, Parse("prefix=3")));
  EXPECT_TRUE(scheduler_->CanSwitch(*sequence, Parse("prefix=2")));
  EXPECT_TRUE(scheduler_->CanSwitch(*sequence, Parse("leaders=0,1,3")));
}

TEST_F(SchedulerSwitchTest, OneThatWaitsStartsUnderTheNewStrategy) {
  Start({.page_tokens = 4}, 8);
  Add("every=4", 4, 5);
  Step();
  Sequence* waiting = Add("full", 4, 5);
  Step();
  ASSERT_EQ(waiting->state, State::kWaiting);
  EXPECT_EQ(Switch(waiting, "every=2"), 0);
  Step();
  EXPECT_EQ(waiting->state, State::kRunning);
  EXPECT_EQ(waiting->pages.num_slots(), 2);
  EXPECT_EQ(EventsOf(waiting), "client:every=2@0 admitted");
}

TEST_F(SchedulerSwitchTest, PlannedSwitchesAreTakenWhereTheyArePlanned) {
  Start({.page_tokens = 4}, 100);
  Request* request = NewRequest("full", 6, 11);
  request->switches.push_back({.after_generated = 2,
                               .strategy = Parse("every=2"),
                               .strategy_label = 5});
  request->switches.push_back(
      {.after_generated = 5, .strategy = Parse("every=4")});
  Sequence* sequence = AddSequence(*request);
  Step();
  // Blocks begin at 0 and 4 under full, at 8 under every=2, at 12 under
  // every=4.
  EXPECT_EQ(pool_->num_used() + pool_->num_reserved(), 4 + 4 + 2 + 1);
  Step(2);  // positions 6 and 7
  EXPECT_EQ(sequence->strategy, Parse("full"));
  Step();
  EXPECT_EQ(sequence->strategy, Parse("every=2"));
  EXPECT_EQ(sequence->strategy_label, 5);
  EXPECT_EQ(pool_->num_used(), 3 * 2);
  EXPECT_EQ(pool_->num_reserved(), 1);
  Step(3);
  EXPECT_EQ(sequence->strategy, Parse("every=4"));
  Step(4);
  EXPECT_EQ(sequence->state, State::kEnded);
  EXPECT_EQ(EventsOf(sequence),
            "admitted planned:every=2@8 planned:every=4@11");
}

TEST_F(SchedulerSwitchTest, AFoundPrefixEndsAtASwitch) {
  Start({.page_tokens = 4}, 100);
  Request* request = NewRequest("full", 6, 11);
  request->switches.push_back(
      {.after_generated = 0, .strategy = Parse("every=2")});
  AddSequence(*request);
  Step(11);
  Request* next = NewRequest("full", 1, 4);
  next->prompt = sequences_[0]->tokens;
  Sequence* second = AddSequence(*next);
  Step();
  // Block 0 alone was run under full.  Layer 0 is in the index further on, but
  // the other layers were written under two maps or not at all.
  EXPECT_EQ(second->num_reused, 4);
  next = NewRequest("every=4", 1, 4);
  next->prompt = sequences_[0]->tokens;
  Sequence* third = AddSequence(*next);
  Step();
  EXPECT_EQ(third->num_reused, 16);
}

TEST_F(SchedulerSwitchTest, RestartRunsAllAgainUnderAnyStrategy) {
  Start({.page_tokens = 4}, 100);
  Sequence* sequence = Add("every=4", 6, 8);  // 13 positions
  Step(4);
  ASSERT_EQ(sequence->num_generated(), 4);
  const std::vector<int32_t> tokens = sequence->tokens;
  EXPECT_EQ(scheduler_->PagesAfterRestart(*sequence, Parse("full"), 0), 16);
  EXPECT_EQ(scheduler_->Restart(sequence, Parse("full"), 0), 0);
  EXPECT_EQ(sequence->state, State::kWaiting);
  EXPECT_EQ(pool_->num_used() + pool_->num_reserved(), 0);
  Step();
  EXPECT_EQ(RowsOf(sequence), 10);  // no layer but the first was cached
  EXPECT_EQ(plan_.num_wanted, 1);
  EXPECT_EQ(pool_->num_used() + pool_->num_reserved(), 16);
  EXPECT_EQ(sequence->num_generated(), 5);
  EXPECT_TRUE(
      std::equal(tokens.begin(), tokens.end(), sequence->tokens.begin()));
  EXPECT_EQ(EventsOf(sequence), "admitted client:full@9 admitted");
  EXPECT_EQ(sequence->num_preemptions, 0);
}

TEST_F(SchedulerSwitchTest, RestartToFewerLeadersFindsTheirPages) {
  Start({.page_tokens = 4}, 100);
  Sequence* sequence = Add("full", 9, 8);  // 16 positions
  Step();
  EXPECT_EQ(scheduler_->Restart(sequence, Parse("prefix=2"), 0), 16 - 8);
  Step();
  EXPECT_EQ(RowsOf(sequence), 2);
  EXPECT_EQ(sequence->num_reused, 0);  // when it was first admitted
}

TEST_F(SchedulerSwitchTest, RestartGivesBackNoPageThatAnotherShares) {
  Start({.page_tokens = 4}, 100);
  Sequence* first = Add("full", 9, 8);  // 16 positions
  Step();
  Request* next = NewRequest("full", 9, 8);
  next->prompt = first->request.prompt;
  Sequence* second = AddSequence(*next);
  Step();
  ASSERT_EQ(second->num_reused, 8);
  // Two of its four blocks were its own; one leader needs four pages.
  EXPECT_EQ(scheduler_->Restart(second, Parse("prefix=1"), 0), 2 * 4 - 4);
}

}  // namespace
}  // namespace strata
