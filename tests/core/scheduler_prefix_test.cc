// What sequences of a scheduler find in the prefix cache, and what they leave.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/scheduler_fixture.h"

namespace strata {
namespace {

class SchedulerPrefixTest : public SchedulerFixture {
 protected:
  // A request with the prompt of `like`.
  Request* NewRequestLike(const Request& like, const std::string& spec) {
    Request* request = NewRequest(spec, 1, like.stopping.max_tokens);
    request->prompt = like.prompt;
    return request;
  }

  // Positions of the prompt of `first`, run under `spec`, that `second` finds.
  int Reused(const std::string& first, const std::string& second) {
    Start({.page_tokens = 4}, 1000);
    Request* request = NewRequest(first, 21, 2);
    AddSequence(*request);
    Step();
    Sequence* sequence = AddSequence(*NewRequestLike(*request, second));
    Step();
    EXPECT_EQ(RowsOf(sequence), 21 - sequence->num_reused);
    return sequence->num_reused;
  }
};

TEST_F(SchedulerPrefixTest, SamplesShareThePromptsWholePages) {
  Start({.page_tokens = 4}, 100);
  Request* request = NewRequest("every=2", 11, 6);  // 16 positions, 2 * 4 pages
  Sequence* first = AddSequence(*request);
  Sequence* second = AddSequence(*request, State::kHeld);
  Step();
  EXPECT_EQ(scheduler_->num_waiting(), 0);
  scheduler_->Release(second);
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
  EXPECT_EQ(pool_->num_used() + pool_->num_reserved(), 0);
  EXPECT_EQ(pool_->num_cached(), 3 * 2);  // the third block came to be whole
}

TEST_F(SchedulerPrefixTest, TheLastPositionOfThePromptIsRunAnyhow) {
  Start({.page_tokens = 4}, 100);
  Request* request = NewRequest("full", 8, 4);
  AddSequence(*request);
  Sequence* second = AddSequence(*request, State::kHeld);
  Step();
  scheduler_->Release(second);
  Step();
  EXPECT_EQ(second->num_reused, 4);
  EXPECT_EQ(RowsOf(second), 4);
  EXPECT_EQ(second->num_generated(), 1);
}

TEST_F(SchedulerPrefixTest, ThePagesOfOneThatIsGoneAreFound) {
  Start({.max_sequences = 1, .page_tokens = 4}, 100);
  Request* request = NewRequest("full", 9, 4);
  Sequence* first = AddSequence(*request);
  Sequence* second = AddSequence(*request, State::kHeld);
  Step();
  scheduler_->Release(second);
  Step();
  EXPECT_EQ(second->state, State::kWaiting);  // no slot
  scheduler_->Remove(first);
  EXPECT_EQ(pool_->num_cached(), 2 * 4);
  Step();
  EXPECT_EQ(second->num_reused, 8);
  EXPECT_EQ(RowsOf(second), 1);
}

TEST_F(SchedulerPrefixTest, StrategiesShareWhereTheyAgreeBelow) {
  EXPECT_EQ(Reused("full", "full"), 20);
  EXPECT_EQ(Reused("full", "prefix=2"), 20);
  EXPECT_EQ(Reused("full", "every=4"), 20);  // layer 0 alone
  EXPECT_EQ(Reused("prefix=2", "full"), 0);  // it lacks two layers
  EXPECT_EQ(Reused("full", "every=2"), 0);   // layer 2 reads another layer 1
  EXPECT_EQ(Reused("every=2", "every=4"), 20);
  EXPECT_EQ(Reused("leaders=0,1,3", "prefix=2"), 20);
  EXPECT_EQ(Reused("sources=0,0,2,0", "every=2"), 20);
}

TEST_F(SchedulerPrefixTest, ASharerHoldsOnlyTheLayersOfItsOwn) {
  Start({.page_tokens = 4}, 100);
  Request* request = NewRequest("full", 9, 4);
  Sequence* first = AddSequence(*request);
  Step();
  Sequence* second = AddSequence(*NewRequestLike(*request, "prefix=2"));
  Step();
  ASSERT_EQ(second->pages.num_slots(), 2);
  EXPECT_EQ(second->pages.at(0, 1), first->pages.at(0, 1));
  EXPECT_EQ(second->pages.at(1, 1), first->pages.at(1, 1));
  EXPECT_EQ(pool_->num_used(), 3 * 4 + 2);
}

TEST_F(SchedulerPrefixTest, BetweenSaltsNothingIsShared) {
  Start({.page_tokens = 4}, 1000);
  Request* request = NewRequest("full", 9, 4);
  AddSequence(*request);
  Step();
  for (const char* salt : {"a", "b", "salt ", ""}) {
    Request* other = NewRequestLike(*request, "full");
    other->cache_salt = salt;
    Sequence* sequence = AddSequence(*other);
    Step();
    EXPECT_EQ(sequence->num_reused, *salt == '\0' ? 8 : 0) << salt;
    sequence = AddSequence(*other);
    Step();
    EXPECT_EQ(sequence->num_reused, 8) << salt;
  }
}

TEST_F(SchedulerPrefixTest, BypassNeitherReadsNorWrites) {
  Start({.page_tokens = 4}, 1000);
  Request* request = NewRequest("full", 9, 4);
  request->bypass_prefix_cache = true;
  Sequence* first = AddSequence(*request);
  Step();
  Sequence* second = AddSequence(*NewRequestLike(*request, "full"));
  Step();
  EXPECT_EQ(second->num_reused, 0);
  Sequence* third = AddSequence(*request);
  Step();
  EXPECT_EQ(third->num_reused, 0);
  for (Sequence* sequence : {first, third}) scheduler_->Remove(sequence);
  EXPECT_EQ(pool_->num_cached(), 0);
}

TEST_F(SchedulerPrefixTest, SamplesShareAmongThemselvesUnderBypass) {
  Start({.page_tokens = 4}, 100);
  Request* request = NewRequest("full", 9, 4);
  request->bypass_prefix_cache = true;
  request->num_sequences = 2;
  Sequence* first = AddSequence(*request);
  Sequence* second = AddSequence(*request, State::kHeld);
  Step();
  scheduler_->Release(second);
  Step();
  EXPECT_EQ(second->num_cached, 9);
  EXPECT_EQ(second->pages.at(0, 0), first->pages.at(0, 0));
  scheduler_->Remove(first);
  scheduler_->Remove(second);
  EXPECT_EQ(pool_->num_free(), 100);
}

TEST_F(SchedulerPrefixTest, GeneratedTokensAreFoundToo) {
  Start({.page_tokens = 4}, 100);
  Request* request = NewRequest("full", 6, 8);
  Sequence* first = AddSequence(*request);
  Step(8);
  ASSERT_EQ(first->state, State::kEnded);
  Request* next = NewRequest("full", 1, 4);
  next->prompt = first->tokens;  // 14; the last one was never run
  next->prompt.push_back(5);
  Sequence* second = AddSequence(*next);
  Step();
  EXPECT_EQ(second->num_reused, 12);
}

TEST_F(SchedulerPrefixTest, OneThatRunsTheSameBesideIsJoined) {
  Start({.page_tokens = 4}, 100);
  Request* request = NewRequest("full", 9, 4);
  Sequence* first = AddSequence(*request);
  Sequence* second = AddSequence(*request);
  Step();
  EXPECT_EQ(RowsOf(second), 9);  // neither had anything to find
  EXPECT_EQ(second->pages.at(3, 1), first->pages.at(3, 1));
  EXPECT_NE(second->pages.at(3, 2), first->pages.at(3, 2));
  EXPECT_EQ(pool_->num_used(), (2 + 2) * 4);
}

TEST_F(SchedulerPrefixTest, WhatWasNotUsedForLongestGivesWay) {
  Start({.page_tokens = 4}, 12);
  std::vector<Request*> requests;
  for (int i = 0; i < 3; ++i) {
    requests.push_back(NewRequest("every=4", 17, 1));  // 4 whole blocks
    AddSequence(*requests.back());
    Step();
  }
  EXPECT_EQ(pool_->num_cached(), 11);  // the last block of the first was needed
  EXPECT_EQ(pool_->num_free(), 1);
  Sequence* sequence = AddSequence(*requests[0]);
  Step();
  EXPECT_EQ(sequence->num_reused, 12);
}

TEST_F(SchedulerPrefixTest, ScoreRunsAllAndLeavesItsPages) {
  Start({.page_tokens = 4}, 100);
  Request* request = NewRequest("full", 9, 1);
  AddSequence(*request);
  Step();
  Request* score = NewRequestLike(*request, "full");
  score->kind = Request::Kind::kScore;
  score->prompt.resize(14, 3);
  Sequence* sequence = AddSequence(*score);
  Step();
  EXPECT_EQ(sequence->num_reused, 0);
  EXPECT_EQ(RowsOf(sequence), 13);
  Sequence* third = AddSequence(*NewRequestLike(*score, "full"));
  Step();
  EXPECT_EQ(third->num_reused, 12);
}

}  // namespace
}  // namespace strata
