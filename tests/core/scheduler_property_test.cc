#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/fit_request.h"
#include "core/scheduler.h"

namespace strata {
namespace {

using State = Sequence::State;

// What a page was last written with, by position: (request, sample, position,
// slot).  Sample is -1 for positions of the prompt: all samples agree on them.
using Content = std::tuple<int, int, int, int>;

// Random requests against a scheduler, checked against a plain model after
// every step.  The pages are written, in the model, as a transformer would.
class RandomRun {
 public:
  explicit RandomRun(uint64_t seed) : random_(seed) {
    options_.max_sequences = 1 + Below(20);
    options_.max_batched_tokens = 1 + Below(64);
    options_.page_tokens = Below(2) ? 4 : 16;
    num_layers_ = 1 + Below(8);
    num_pages_ = 20 + Below(300);
    pool_ = std::make_unique<KvPool>(num_pages_);
    scheduler_ = std::make_unique<Scheduler>(options_, pool_.get());
    contents_.resize(num_pages_ * options_.page_tokens);
  }

  void Run(int num_steps) {
    for (int step = 0; step < num_steps && !HasFailed(); ++step) {
      while (live_.size() < 60 && Below(3) == 0) AddRequest();
      while (!live_.empty() && Below(12) == 0) Remove(AnyLive());
      if (Below(10) == 0) AdmitOne();
      Step();
    }
    // Every step runs a row, so what is left ends.
    int64_t rows_left = 0;
    for (const auto& live : live_) {
      rows_left += live->sequence->request.MaxPositions();
    }
    while (!live_.empty() && !HasFailed()) {
      ASSERT_GE(rows_left, 0);
      Step();
      rows_left -= plan_.num_rows;
    }
    ASSERT_EQ(pool_->num_free(), num_pages_);
    ASSERT_EQ(pool_->num_used(), 0);
    ASSERT_EQ(scheduler_->num_running(), 0);
    ASSERT_EQ(scheduler_->num_waiting(), 0);
  }

 private:
  struct Live {
    std::unique_ptr<Sequence> sequence;
    int request = 0;  // index in requests_
    int order = 0;    // of Add
    absl::Time due;
    int num_passed = 0;
  };

  static bool HasFailed() { return ::testing::Test::HasFatalFailure(); }
  int Below(int n) { return static_cast<int>(random_() % n); }
  Live* AnyLive() { return live_[Below(live_.size())].get(); }
  Live* Find(const Sequence* sequence) {
    for (const auto& live : live_) {
      if (live->sequence.get() == sequence) return live.get();
    }
    return nullptr;
  }

  SharingStrategy AnyStrategy() {
    std::string spec = "sources=0";
    std::vector<int> leaders = {0};
    for (int layer = 1; layer < num_layers_; ++layer) {
      if (Below(3) == 0) leaders.push_back(layer);
      const bool leads = leaders.back() == layer;
      spec +=
          "," + std::to_string(leads ? layer : leaders[Below(leaders.size())]);
    }
    if (Below(2)) spec = Below(2) ? "full" : "every=2";
    return *SharingStrategy::Parse(spec, num_layers_);
  }

  void AddRequest() {
    auto request = std::make_unique<Request>(AnyStrategy());
    const bool score = Below(8) == 0;
    request->kind = score ? Request::Kind::kScore : Request::Kind::kGenerate;
    request->prompt.resize((score ? 2 : 1) + Below(Below(4) ? 20 : 150));
    request->stopping.max_tokens = score ? 0 : 1 + Below(40);
    request->priority = Below(4) ? 0 : Below(400) - 200;
    request->strategy_label = Below(3);
    request->num_sequences = score || Below(3) ? 1 : 1 + Below(6);
    if (PagesNeeded(*request, options_.page_tokens) > num_pages_) return;
    requests_.push_back(std::move(request));
    const Request& added = *requests_.back();
    for (int i = 0; i < added.num_sequences; ++i) {
      auto live = std::make_unique<Live>();
      live->sequence = std::make_unique<Sequence>(
          nullptr, added, i, SequenceOutput(nullptr, added, {}));
      live->sequence->state = i == 0 ? State::kWaiting : State::kHeld;
      live->request = static_cast<int>(requests_.size()) - 1;
      live->order = ++last_order_;
      live->due = now_ + std::clamp(added.priority, -100, 100) *
                             Scheduler::kPriorityDelay;
      scheduler_->Add(live->sequence.get(), now_);
      live_.push_back(std::move(live));
    }
  }

  // Takes it out; samples held for it go on without it.
  void Remove(Live* live) {
    Sequence* sequence = live->sequence.get();
    const Request* request = &sequence->request;
    const bool releases =
        sequence->index == 0 && sequence->num_generated() == 0;
    scheduler_->Remove(sequence);
    ASSERT_EQ(sequence->state, State::kEnded);
    std::erase_if(live_, [&](const auto& l) { return l.get() == live; });
    if (releases) ReleaseSamples(*request, nullptr);
  }

  void ReleaseSamples(const Request& request, Sequence* donor) {
    for (const auto& live : live_) {
      Sequence* sequence = live->sequence.get();
      if (&sequence->request != &request) continue;
      if (sequence->state == State::kHeld) {
        scheduler_->Release(sequence, Below(5) ? donor : nullptr);
      }
    }
  }

  std::set<Live*> Waiting() {
    std::set<Live*> waiting;
    for (const auto& live : live_) {
      if (live->sequence->state == State::kWaiting) waiting.insert(live.get());
    }
    return waiting;
  }

  void AdmitOne() {
    const std::set<Live*> before = Waiting();
    Sequence* admitted = scheduler_->AdmitNext();
    const std::set<Live*> after = Waiting();
    ASSERT_EQ(before.size() - after.size(), admitted != nullptr ? 1u : 0u);
    CheckPassed(before, after);
    CheckPool();
  }

  void Step() {
    now_ += absl::Milliseconds(Below(3000));
    const std::set<Live*> before = Waiting();
    scheduler_->Plan(now_, &plan_);
    CheckPassed(before, Waiting());
    CheckPlan();
    CheckPool();
    if (HasFailed()) return;
    WriteRows();
    scheduler_->Commit(plan_);
    for (const BatchPlan::Chunk& chunk : plan_.chunks) Deliver(chunk);
    CheckPool();
  }

  void Deliver(const BatchPlan::Chunk& chunk) {
    Sequence* sequence = chunk.sequence;
    const Request& request = sequence->request;
    if (request.kind == Request::Kind::kScore) {
      if (sequence->num_pending() == 0) Remove(Find(sequence));
      return;
    }
    if (chunk.num_wanted == 0) return;
    sequence->tokens.push_back(Below(100));
    const bool ends =
        sequence->num_generated() == request.stopping.max_tokens ||
        Below(30) == 0;
    if (sequence->index == 0 && sequence->num_generated() == 1) {
      ReleaseSamples(request, ends ? nullptr : sequence);
    }
    if (ends) Remove(Find(sequence));
  }

  // Nobody is passed more often than is allowed.
  void CheckPassed(const std::set<Live*>& before,
                   const std::set<Live*>& after) {
    for (Live* admitted : before) {
      if (after.contains(admitted)) continue;
      for (Live* waiting : after) {
        if (std::pair(admitted->due, admitted->order) <
            std::pair(waiting->due, waiting->order)) {
          continue;
        }
        ASSERT_LE(++waiting->num_passed, Scheduler::kMaxBypass);
      }
    }
  }

  void CheckPlan() {
    int num_rows = 0, num_wanted = 0;
    std::set<const Sequence*> seen;
    std::set<std::string> strategies;
    const std::string* last_strategy = nullptr;
    for (const BatchPlan::Chunk& chunk : plan_.chunks) {
      const Sequence& sequence = *chunk.sequence;
      ASSERT_TRUE(seen.insert(&sequence).second);
      ASSERT_EQ(sequence.state, State::kRunning);
      ASSERT_GE(chunk.num_rows, 1);
      ASSERT_LE(chunk.num_rows, sequence.num_pending());
      const bool last = chunk.num_rows == sequence.num_pending();
      const bool score = sequence.request.kind == Request::Kind::kScore;
      ASSERT_EQ(chunk.num_wanted, score ? chunk.num_rows : last ? 1 : 0);
      ASSERT_LE(sequence.num_cached + chunk.num_rows,
                sequence.pages.num_blocks() * options_.page_tokens);
      const std::string& strategy = sequence.strategy.canonical();
      if (last_strategy == nullptr || *last_strategy != strategy) {
        ASSERT_TRUE(strategies.insert(strategy).second)
            << "split: " << strategy;
        last_strategy = &strategy;
      }
      num_rows += chunk.num_rows;
      num_wanted += chunk.num_wanted;
    }
    ASSERT_EQ(plan_.num_rows, num_rows);
    ASSERT_EQ(plan_.num_wanted, num_wanted);
    ASSERT_LE(num_rows, options_.max_batched_tokens);
    ASSERT_LE(scheduler_->num_running(), options_.max_sequences);
    bool starved = false;  // a prompt that got less than it could
    for (const Sequence* sequence : scheduler_->running()) {
      if (sequence->num_generated() > 0) {
        ASSERT_TRUE(seen.contains(sequence)) << "a decoding one pauses";
      }
      starved |= !seen.contains(sequence);
    }
    if (starved) {
      ASSERT_EQ(num_rows, options_.max_batched_tokens);
    }
    if (plan_.empty()) {
      ASSERT_EQ(scheduler_->num_running(), 0);
      ASSERT_EQ(scheduler_->num_waiting(), 0);
    }
  }

  // Sums, owners and promises.
  void CheckPool() {
    std::map<KvPool::PageId, std::tuple<int, int, int>> owners;
    std::map<int, int64_t> by_label;
    int64_t reserved = 0;
    for (const auto& live : live_) {
      const Sequence& sequence = *live->sequence;
      const PageTable& pages = sequence.pages;
      reserved += sequence.num_reserved;
      if (sequence.state != State::kRunning) {
        ASSERT_EQ(pages.num_pages() + sequence.num_reserved, 0);
        continue;
      }
      // All or nothing: what it will ever need is its own already.
      ASSERT_EQ(pages.num_pages() + sequence.num_reserved,
                PagesNeeded(sequence.request, options_.page_tokens));
      const int num_shareable =
          (sequence.num_prompt() - 1) / options_.page_tokens;
      for (int slot = 0; slot < pages.num_slots(); ++slot) {
        for (int block = 0; block < pages.num_blocks(); ++block) {
          const auto [it, is_new] = owners.insert(
              {pages.at(slot, block), {live->request, slot, block}});
          if (is_new) ++by_label[sequence.request.strategy_label];
          if (is_new) continue;
          ASSERT_EQ(it->second, std::tuple(live->request, slot, block));
          ASSERT_LT(block, num_shareable) << "shares what it will write";
        }
      }
    }
    ASSERT_EQ(pool_->num_used(), static_cast<int64_t>(owners.size()));
    ASSERT_EQ(pool_->num_reserved(), reserved);
    ASSERT_EQ(pool_->num_used() + pool_->num_reserved() + pool_->num_free(),
              num_pages_);
    for (int label = 0; label < 3; ++label) {
      ASSERT_EQ(pool_->num_used(label), by_label[label]);
    }
  }

  Content ContentOf(const Live& live, int position, int slot) const {
    const bool prompt = position < live.sequence->num_prompt();
    return {live.request, prompt ? -1 : live.sequence->index, position, slot};
  }

  // Writes the plan's rows, then reads all positions that they attend to.
  void WriteRows() {
    const auto at = [&](const Sequence& sequence, int position,
                        int slot) -> Content& {
      const KvPool::PageId page =
          sequence.pages.at(slot, position / options_.page_tokens);
      return contents_[page * options_.page_tokens +
                       position % options_.page_tokens];
    };
    for (const bool write : {true, false}) {
      for (const BatchPlan::Chunk& chunk : plan_.chunks) {
        const Sequence& sequence = *chunk.sequence;
        const Live& live = *Find(&sequence);
        const int end = sequence.num_cached + chunk.num_rows;
        for (int p = write ? sequence.num_cached : 0; p < end; ++p) {
          for (int slot = 0; slot < sequence.strategy.num_leaders(); ++slot) {
            const Content content = ContentOf(live, p, slot);
            if (write) at(sequence, p, slot) = content;
            ASSERT_EQ(at(sequence, p, slot), content) << "position " << p;
          }
        }
      }
    }
  }

  std::mt19937_64 random_;
  Scheduler::Options options_;
  int num_layers_;
  int num_pages_;
  std::unique_ptr<KvPool> pool_;
  std::unique_ptr<Scheduler> scheduler_;
  BatchPlan plan_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<std::unique_ptr<Live>> live_;
  std::vector<Content> contents_;  // [page, position in the page]
  absl::Time now_ = absl::FromUnixSeconds(1000);
  int last_order_ = 0;
};

TEST(SchedulerPropertyTest, RandomRequestsFromFirstToLast) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    RandomRun run(seed);
    run.Run(800);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace strata
