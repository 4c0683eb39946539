#include "core/demotion.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace strata {
namespace {

constexpr int kLayers = 8;
constexpr int kPageTokens = 4;

SharingStrategy Parse(const std::string& spec) {
  return *SharingStrategy::Parse(spec, kLayers);
}

class DemotionTest : public ::testing::Test {
 protected:
  Request* NewRequest(const std::string& spec, const std::string& floor = "") {
    requests_.push_back(std::make_unique<Request>(Parse(spec)));
    Request* request = requests_.back().get();
    request->prompt.assign(10, 1);
    request->stopping.max_tokens = 31;  // 40 positions, 10 blocks
    if (!floor.empty()) request->floor = Parse(floor);
    return request;
  }

  Sequence* NewSequence(const Request& request) {
    sequences_.push_back(std::make_unique<Sequence>(
        nullptr, request, 0, SequenceOutput(nullptr, request, {})));
    return sequences_.back().get();
  }

  // A running sequence with positions up to `num_cached` cached, and pages
  // promised before `promised_end`.
  Sequence* Run(const Request& request, int num_cached, int64_t promised_end) {
    Sequence* sequence = NewSequence(request);
    sequence->state = Sequence::State::kRunning;
    sequence->num_cached = sequence->max_cached = num_cached;
    const int num_slots = sequence->strategy.num_leaders();
    sequence->pages = PageTable(num_slots, 10);
    const std::vector<KvPool::PageId> pages(num_slots, 0);
    while (sequence->pages.num_blocks() * kPageTokens < num_cached) {
      sequence->pages.AppendBlock(pages.data());
    }
    sequence->promised_end = promised_end;
    sequence->num_reserved = sequence->path.PagesAhead(
        sequence->pages.num_blocks(), promised_end, kPageTokens);
    running_.push_back(sequence);
    return sequence;
  }

  std::vector<Demotion> Find() const {
    return FindDemotions(running_, kPageTokens);
  }

  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> running_;
};

TEST_F(DemotionTest, SavesPagesAndPromisesOfDroppedLeaders) {
  Sequence* sequence = Run(*NewRequest("full", "every=4"), 9, 40);
  const std::vector<Demotion> demotions = Find();
  ASSERT_EQ(demotions.size(), 1u);
  EXPECT_EQ(demotions[0].request, &sequence->request);
  EXPECT_EQ(demotions[0].sequences, std::vector<Sequence*>{sequence});
  EXPECT_EQ(demotions[0].saving, (8 - 2) * 10);
}

TEST_F(DemotionTest, WhatIsNotPromisedIsNotSaved) {
  Run(*NewRequest("full", "every=4"), 9, 12);
  ASSERT_EQ(Find().size(), 1u);
  EXPECT_EQ(Find()[0].saving, (8 - 2) * 3);
}

TEST_F(DemotionTest, PlannedSwitchesSaveTheirPartAnyhow) {
  Request* request = NewRequest("full", "every=4");
  request->switches.push_back({.after_generated = 10,  // at position 20
                               .strategy = Parse("every=2")});
  Run(*request, 9, 40);
  ASSERT_EQ(Find().size(), 1u);
  EXPECT_EQ(Find()[0].saving, (8 - 2) * 5 + (4 - 2) * 5);
}

TEST_F(DemotionTest, ALargerFloorThanAPlannedSwitchMaySaveNothing) {
  Request* request = NewRequest("full", "prefix=7");
  // Layer 7 alone beside layer 0: it would fall away at the floor.
  request->switches.push_back(
      {.after_generated = 10, .strategy = Parse("leaders=0,7")});
  Run(*request, 9, 40);
  EXPECT_TRUE(Find().empty());
  Sequence* waiting = NewSequence(*request);
  EXPECT_EQ(SavingAtFloor(*waiting, 40, kPageTokens), 0);
  EXPECT_EQ(SavingAtFloor(*waiting, 12, kPageTokens), 0);  // more in the end
}

TEST_F(DemotionTest, WithoutUseOfAFloorThereIsNone) {
  Run(*NewRequest("full"), 9, 40);
  Run(*NewRequest("every=4", "every=4"), 9, 40);
  Sequence* replaying = Run(*NewRequest("full", "every=4"), 9, 40);
  replaying->max_cached = 10;
  Sequence* below = Run(*NewRequest("full", "every=4"), 9, 40);
  below->strategy = Parse("leaders=0,3");  // as after another switch
  EXPECT_TRUE(Find().empty());
}

TEST_F(DemotionTest, TheLargestSavingComesFirstThenTheNewest) {
  Request* small = NewRequest("every=2", "every=4");
  Request* old = NewRequest("full", "every=4");
  Request* young = NewRequest("full", "every=4");
  Request* large = NewRequest("full", "every=8");
  for (Request* request : {small, old, large, young}) Run(*request, 9, 40);
  std::vector<const Request*> order;
  for (const Demotion& demotion : Find()) order.push_back(demotion.request);
  EXPECT_EQ(order, (std::vector<const Request*>{large, young, old, small}));
}

TEST_F(DemotionTest, SamplesOfARequestAreOneDemotion) {
  Request* samples = NewRequest("every=2", "every=4");
  Run(*samples, 9, 40);
  Run(*NewRequest("full", "every=4"), 9, 40);
  Run(*samples, 12, 40);
  Run(*samples, 13, 40);
  Run(*samples, 39, 40);
  const std::vector<Demotion> demotions = Find();
  ASSERT_EQ(demotions.size(), 2u);
  EXPECT_EQ(demotions[0].request, samples);
  EXPECT_EQ(demotions[0].sequences.size(), 4u);
  EXPECT_EQ(demotions[0].saving, 4 * (4 - 2) * 10);
  EXPECT_EQ(demotions[1].saving, (8 - 2) * 10);
}

TEST_F(DemotionTest, OneAtItsFloorDoesNotStartThereAgain) {
  Request* request = NewRequest("full", "full");
  request->switches.push_back(
      {.after_generated = 0, .strategy = Parse("every=2")});
  Sequence* sequence = NewSequence(*request);
  sequence->path.Insert(0, Parse("every=4"), 0, SwitchCause::kClient);
  sequence->path.Restart(*request, 0, Parse("full"), 0);
  EXPECT_EQ(SavingAtFloor(*sequence, 40, kPageTokens), 0);
}

TEST_F(DemotionTest, OneThatHasNotBegunMayStartAtItsFloor) {
  Sequence* sequence = NewSequence(*NewRequest("full", "every=4"));
  EXPECT_EQ(SavingAtFloor(*sequence, 40, kPageTokens), (8 - 2) * 10);
  EXPECT_EQ(SavingAtFloor(*sequence, 12, kPageTokens), (8 - 2) * 3);
  sequence->max_cached = 1;
  EXPECT_EQ(SavingAtFloor(*sequence, 40, kPageTokens), 0);
  EXPECT_EQ(SavingAtFloor(*NewSequence(*NewRequest("full")), 40, kPageTokens),
            0);
  EXPECT_EQ(SavingAtFloor(*NewSequence(*NewRequest("every=4", "every=4")), 40,
                          kPageTokens),
            0);
}

}  // namespace
}  // namespace strata
