// What a scheduler does when pages are short: floors, then pre-emption.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/scheduler_fixture.h"

namespace strata {
namespace {

class SchedulerPressureTest : public SchedulerFixture {
 protected:
  // Of 16 positions, in 4 blocks.
  Sequence* AddFloored(const std::string& spec, const std::string& floor) {
    Request* request = NewRequest(spec, 8, 9);
    request->floor = Parse(floor);
    request->floor_label = 6;
    return AddSequence(*request);
  }
  int64_t NumTaken() const { return pool_->num_used() + pool_->num_reserved(); }
};

TEST_F(SchedulerPressureTest, OverTheThresholdDemotesNoMoreThanIsNeeded) {
  Start({.page_tokens = 4}, 48);
  Sequence* a = AddFloored("full", "every=2");
  Sequence* b = AddFloored("full", "every=2");
  Sequence* c = AddFloored("every=2", "every=4");
  Sequence* d = Add("every=2", 8, 9);
  Step();
  EXPECT_EQ(NumTaken(), 48);
  Step();  // 43 pages are allowed: one demotion is enough
  EXPECT_EQ(NumTaken(), 40);
  EXPECT_EQ(EventsOf(a), "admitted");
  EXPECT_EQ(EventsOf(b), "admitted pressure:every=2@8");  // the newer one
  EXPECT_EQ(EventsOf(c), "admitted");
  EXPECT_EQ(EventsOf(d), "admitted");
  EXPECT_EQ(b->strategy_label, 6);
  Step();
  EXPECT_EQ(NumTaken(), 40);
  scheduler_->SetPolicy({.pressure_threshold = 0.7});  // 33 pages
  Step();
  EXPECT_EQ(NumTaken(), 32);
  EXPECT_EQ(EventsOf(a), "admitted pressure:every=2@10");
  scheduler_->SetPolicy({.pressure_threshold = 0.1});
  Step();
  EXPECT_EQ(NumTaken(), 28);  // there is no other floor
  EXPECT_EQ(d->strategy, Parse("every=2"));
}

TEST_F(SchedulerPressureTest, NobodyIsDemotedWhereThePolicyForbids) {
  Start({.page_tokens = 4}, 48);
  scheduler_->SetPolicy(
      {.demote_under_pressure = false, .pressure_threshold = 0.1});
  Sequence* a = AddFloored("full", "every=2");
  Step();
  Sequence* blocked = AddFloored("full", "every=2");
  Add("full", 8, 9);
  Sequence* waiting = AddFloored("full", "every=2");
  Step(3);
  EXPECT_EQ(EventsOf(a), "admitted");
  EXPECT_EQ(EventsOf(blocked), "admitted");
  EXPECT_EQ(waiting->state, State::kWaiting);
}

TEST_F(SchedulerPressureTest, TheFirstThatDoesNotFitIsMadeRoomFor) {
  Start({.page_tokens = 4}, 36);
  scheduler_->SetPolicy({.pressure_threshold = 1.0});
  Sequence* small = AddFloored("every=2", "every=4");
  Sequence* large = AddFloored("full", "every=2");
  Step();
  EXPECT_EQ(NumTaken(), 24);
  Sequence* next = Add("full", 8, 9);
  Step();
  EXPECT_EQ(next->state, State::kRunning);
  EXPECT_EQ(EventsOf(large), "admitted pressure:every=2@8");
  EXPECT_EQ(EventsOf(small), "admitted");
  EXPECT_EQ(NumTaken(), 32);
}

TEST_F(SchedulerPressureTest, NobodyIsDemotedInVain) {
  Start({.page_tokens = 4}, 24);
  scheduler_->SetPolicy({.pressure_threshold = 1.0});
  Sequence* first = AddFloored("full", "every=2");
  Sequence* second = AddFloored("every=2", "every=4");
  Step();
  EXPECT_EQ(NumTaken(), 24);
  Sequence* next = Add("full", 8, 9);  // 16 pages; all floors give 12
  Step(3);
  EXPECT_EQ(next->state, State::kWaiting);
  EXPECT_EQ(EventsOf(first), "admitted");
  EXPECT_EQ(EventsOf(second), "admitted");
}

TEST_F(SchedulerPressureTest, OnlyTheFirstInTurnDemotesOthers) {
  Start({.page_tokens = 4}, 16);
  scheduler_->SetPolicy({.pressure_threshold = 1.0});
  Sequence* running = AddFloored("full", "every=2");
  Step();
  Add("full", 8, 9);  // does not fit, and cannot be made to
  Sequence* small = Add("every=4", 8, 9);
  Step();
  EXPECT_EQ(small->state, State::kWaiting);
  EXPECT_EQ(EventsOf(running), "admitted");
}

TEST_F(SchedulerPressureTest, ASwitchThatIsDueComesBeforeADemotion) {
  Start({.page_tokens = 4}, 16);
  scheduler_->SetPolicy({.pressure_threshold = 1.0});
  Request* request = NewRequest("full", 8, 9);
  request->floor = Parse("prefix=2");
  request->switches.push_back(
      {.after_generated = 0, .strategy = Parse("leaders=0,3")});
  Sequence* running = AddSequence(*request);
  Step();
  Sequence* next = Add("full", 4, 5);
  EXPECT_EQ(scheduler_->AdmitNext(), next);
  EXPECT_EQ(EventsOf(running), "admitted planned:every=3@8");
}

TEST_F(SchedulerPressureTest, OneThatWaitsMayStartAtItsFloor) {
  Start({.page_tokens = 4}, 24);
  scheduler_->SetPolicy({.pressure_threshold = 1.0});
  Sequence* other = AddFloored("full", "every=2");
  Sequence* sequence = AddFloored("full", "every=4");
  Step();
  // It saves 12 itself, the other one 8.
  EXPECT_EQ(EventsOf(other), "admitted");
  EXPECT_EQ(EventsOf(sequence), "admitted");  // no switch
  EXPECT_EQ(sequence->strategy, Parse("every=4"));
  EXPECT_EQ(sequence->strategy_label, 6);
  EXPECT_EQ(NumTaken(), 16 + 4);
}

TEST_F(SchedulerPressureTest, WhatCanNeverFitIsRunAtItsFloor) {
  Start({.page_tokens = 4}, 15);
  scheduler_->SetPolicy({.demote_under_pressure = false});
  Sequence* sequence = AddFloored("full", "every=2");
  EXPECT_EQ(sequence->strategy, Parse("every=2"));
  Step();
  EXPECT_EQ(EventsOf(sequence), "admitted");
  EXPECT_EQ(NumTaken(), 8);
}

TEST_F(SchedulerPressureTest, AllSamplesOfARequestAreDemotedTogether) {
  Start({.page_tokens = 4}, 100);
  Request* request = NewRequest("full", 8, 9);
  request->floor = Parse("every=4");
  std::vector<Sequence*> samples;
  for (int i = 0; i < 3; ++i) samples.push_back(AddSequence(*request));
  Step();
  scheduler_->SetPolicy({.pressure_threshold = 0.3});
  Step();
  for (const Sequence* sample : samples) {
    EXPECT_EQ(EventsOf(sample), "admitted pressure:every=4@8");
  }
}

class OptimisticTest : public SchedulerPressureTest {
 protected:
  void StartOptimistic(int64_t num_pages) {
    Start({.page_tokens = 4, .optimistic = true}, num_pages);
    scheduler_->SetPolicy({.pressure_threshold = 1.0});
  }
  // Of 20 positions, in 5 blocks.
  Sequence* AddGrowing(const std::string& spec) { return Add(spec, 4, 17); }
};

TEST_F(OptimisticTest, AdmitsWhatThePromptNeedsAndLeavesRoomToGrow) {
  StartOptimistic(4);
  Sequence* a = Add("every=4", 4, 13);
  Sequence* b = Add("every=4", 4, 13);
  Sequence* c = Add("every=4", 4, 13);
  Step();
  EXPECT_EQ(a->state, State::kRunning);
  EXPECT_EQ(b->state, State::kRunning);
  EXPECT_EQ(c->state, State::kWaiting);  // 2 are spare for those that run
  EXPECT_EQ(NumTaken(), 2);
}

TEST_F(OptimisticTest, TheNewestIsPreemptedAndComesToTheSameTokens) {
  StartOptimistic(6);
  Sequence* a = AddGrowing("every=4");
  Sequence* b = AddGrowing("every=4");
  for (int i = 0; b->num_preemptions == 0; ++i) {
    ASSERT_LT(i, 20);
    Step();
  }
  EXPECT_EQ(a->num_cached, 13);  // its fourth block was short
  EXPECT_EQ(b->state, State::kWaiting);
  EXPECT_EQ(b->num_generated(), 9);
  EXPECT_EQ(b->max_cached, 12);
  EXPECT_EQ(b->num_cached, 0);
  while (a->state == State::kRunning) {
    EXPECT_EQ(b->state, State::kWaiting);  // only with all that it needs
    Step();
  }
  Step();
  EXPECT_EQ(b->state, State::kRunning);
  EXPECT_EQ(NumTaken(), 5);
  EXPECT_EQ(RowsOf(b), 13 - 4);  // block 0 was left in the index
  EXPECT_EQ(b->num_reused, 0);
  Step(20);
  for (Sequence* sequence : {a, b}) {
    EXPECT_EQ(sequence->state, State::kEnded);
    ASSERT_EQ(sequence->num_generated(), 17);
    for (int i = 0; i < 17; ++i) EXPECT_EQ(sequence->tokens[4 + i], 1000 + i);
  }
  EXPECT_EQ(EventsOf(a), "admitted");
  EXPECT_EQ(EventsOf(b), "admitted preempted admitted");
}

TEST_F(OptimisticTest, FloorsComeBeforePreemption) {
  StartOptimistic(15);
  Sequence* a = AddGrowing("every=2");
  Request* request = NewRequest("every=2", 4, 17);
  request->floor = Parse("every=4");
  Sequence* b = AddSequence(*request);
  Step(9);
  EXPECT_EQ(EventsOf(a), "admitted");
  EXPECT_EQ(EventsOf(b), "admitted");
  EXPECT_EQ(NumTaken(), 12);
  Step();  // both want their fourth block
  Step(10);
  EXPECT_EQ(a->state, State::kEnded);
  EXPECT_EQ(b->state, State::kEnded);
  EXPECT_EQ(EventsOf(a), "admitted");
  EXPECT_EQ(EventsOf(b), "admitted pressure:every=4@12");
}

TEST_F(OptimisticTest, APreemptedOneRunsItsSwitchesAgainWhereTheyWere) {
  StartOptimistic(12);
  Sequence* a = AddGrowing("every=2");
  Sequence* b = AddGrowing("every=2");
  Step(6);
  scheduler_->Switch(b, Parse("every=4"), 0, SwitchCause::kClient);
  for (int i = 0; b->num_preemptions == 0; ++i) {
    ASSERT_LT(i, 20);
    Step();
  }
  EXPECT_EQ(b->strategy, Parse("every=2"));
  EXPECT_EQ(b->path.StrategyAt(8), Parse("every=2"));
  EXPECT_EQ(b->path.StrategyAt(9), Parse("every=4"));
  // A switch asked for now begins where it had come to.
  const int position = b->max_cached;
  EXPECT_FALSE(scheduler_->CanSwitch(*b, Parse("every=2")));
  scheduler_->Switch(b, Parse("sources=0,0,0,0"), 0, SwitchCause::kClient);
  EXPECT_GT(position, 9);
  while (b->state == State::kWaiting) Step();
  EXPECT_EQ(a->state, State::kEnded);
  EXPECT_EQ(b->num_cached, 9);  // up to the switch
  Step(30);
  EXPECT_EQ(b->state, State::kEnded);
  EXPECT_EQ(EventsOf(b), "admitted client:every=4@9 preempted admitted");
}

TEST_F(OptimisticTest, APreemptedOneFindsNothingBeyondItsSwitches) {
  StartOptimistic(10);
  Sequence* a = AddGrowing("every=2");
  Sequence* b = AddSequence(a->request);  // the same tokens
  Step(6);
  scheduler_->Switch(b, Parse("every=4"), 0, SwitchCause::kClient);
  while (b->state != State::kWaiting) Step();
  while (b->state == State::kWaiting) Step();
  EXPECT_EQ(EventsOf(b), "admitted client:every=4@9 preempted admitted");
  // All blocks of a are in the index, but position 9 of b was run otherwise.
  EXPECT_EQ(a->state, State::kEnded);
  EXPECT_EQ(RowsOf(b), 1);
  EXPECT_EQ(b->num_cached, 9);
}

}  // namespace
}  // namespace strata
