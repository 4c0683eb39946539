#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/scheduler_model.h"

namespace strata {
namespace {

using State = Sequence::State;
using Live = SchedulerModel::Live;

// Random operations on a scheduler that its model checks.
class RandomRun {
 public:
  explicit RandomRun(uint64_t seed) : random_(seed) {
    options_.max_sequences = 1 + Below(20);
    options_.max_batched_tokens = 1 + Below(64);
    options_.page_tokens = Below(2) ? 4 : 16;
    options_.optimistic = Below(2) == 0;
    num_layers_ = 1 + Below(8);
    num_pages_ = Below(4) ? 8 + Below(80) : 100 + Below(300);
    model_ = std::make_unique<SchedulerModel>(options_, num_layers_, num_pages_,
                                              /*runs_ahead=*/seed % 2 == 0);
    for (std::vector<int32_t>& prompt : shared_prompts_) {
      prompt.resize(10 + Below(80));
      for (int32_t& token : prompt) token = Below(40);
    }
  }

  void Run(int num_steps) {
    for (int step = 0; step < num_steps && !HasFailed(); ++step) {
      while (model_->live().size() < 40 && Below(3) == 0) AddRequest();
      if (Below(2) == 0) Operate();
      if (HasFailed()) return;
      Step();
    }
    Drain();
    if (!HasFailed()) model_->CheckIdle();
  }

  const std::map<std::string, int64_t>& seen() const { return model_->seen(); }

 private:
  static bool HasFailed() { return ::testing::Test::HasFailure(); }
  int Below(int n) { return static_cast<int>(random_() % n); }
  Live* AnyLive() {
    const auto& live = model_->live();
    return live.empty() ? nullptr : live[Below(live.size())].get();
  }

  // Leaders are drawn from those of `within`.
  SharingStrategy AnyStrategy(const SharingStrategy& within) {
    const bool nearest = Below(3) > 0;
    const int one_in = 1 + Below(3);
    std::string spec = "sources=0";
    std::vector<int> leaders = {0};
    for (int layer = 1; layer < num_layers_; ++layer) {
      if (within.is_leader(layer) && Below(one_in) == 0) {
        leaders.push_back(layer);
      }
      int source = leaders.back();
      if (source != layer && !nearest) source = leaders[Below(leaders.size())];
      spec += "," + std::to_string(source);
    }
    return *SharingStrategy::Parse(spec, num_layers_);
  }
  SharingStrategy AnyStrategy() {
    if (Below(2)) return Full();
    return AnyStrategy(Full());
  }
  SharingStrategy Full() const { return SharingStrategy::Full(num_layers_); }

  std::vector<int32_t> AnyPrompt(int at_least) {
    std::vector<int32_t> prompt;
    if (Below(5) > 0) {
      prompt = shared_prompts_[Below(3)];
    } else if (Below(2)) {
      prompt = model_->last_tokens();  // another turn of a conversation
    }
    if (Below(4) == 0)
      prompt.resize(std::min<size_t>(prompt.size(), Below(90)));
    int num_more = Below(3) ? Below(5) : Below(60);
    for (; num_more > 0 || static_cast<int>(prompt.size()) < at_least;
         --num_more) {
      prompt.push_back(Below(3));
    }
    return prompt;
  }

  void AddRequest() {
    auto request = std::make_unique<Request>(AnyStrategy());
    const bool score = Below(8) == 0;
    request->kind = score ? Request::Kind::kScore : Request::Kind::kGenerate;
    request->prompt = AnyPrompt(score ? 2 : 1);
    request->stopping.max_tokens = score ? 0 : 1 + Below(40);
    request->priority = Below(4) ? 0 : Below(400) - 200;
    request->strategy_label = Below(3);
    request->num_sequences = score || Below(3) ? 1 : 1 + Below(6);
    request->sampling.seed = Below(3);
    request->bypass_prefix_cache = Below(6) == 0;
    constexpr const char* kSalts[] = {"", "a", "request 1", "salt "};
    if (Below(3) == 0) request->cache_salt = kSalts[Below(4)];
    if (Below(2)) {
      request->floor = AnyStrategy(request->strategy);
      request->floor_label = Below(3);
    }
    if (!score && Below(3) == 0) {
      int after_generated = Below(3);
      SharingStrategy before = request->strategy;
      for (int i = 1 + Below(3); i > 0; --i) {
        before = AnyStrategy(before);
        request->switches.push_back({.after_generated = after_generated,
                                     .strategy = before,
                                     .strategy_label = Below(3)});
        after_generated += 1 + Below(10);
      }
    }
    if (model_->Fits(*request)) model_->Add(std::move(request));
  }

  void Operate() {
    const int operation = Below(8);
    if (operation >= 4) model_->Deliver();
    Live* const live = AnyLive();
    if (operation == 0) {
      model_->SetPolicy({.demote_under_pressure = Below(4) > 0,
                         .pressure_threshold = (1 + Below(100)) / 100.0});
    } else if (operation <= 2) {
      model_->AdmitNext();
    } else if (live == nullptr) {
      return;
    } else if (operation == 3) {
      model_->Remove(live);
    } else if (operation == 4) {
      model_->Restart(live, AnyStrategy());
    } else {
      const Trajectory& trajectory = live->trajectory;
      const SharingStrategy& now = trajectory.StrategyAt(trajectory.length());
      model_->Switch(live, Below(5) ? AnyStrategy(now) : AnyStrategy());
    }
  }

  void Step() { model_->Step(absl::Milliseconds(Below(3000))); }

  // Each step runs a row, and no row more than twice, or ends what waits for
  // its last token, so what is left ends.
  void Drain() {
    int64_t rows_left = 0;
    for (const auto& live : model_->live()) {
      rows_left += 2 * live->sequence->request.MaxPositions() + 1;
    }
    for (; !model_->live().empty() && !HasFailed(); --rows_left) {
      ASSERT_GE(rows_left, 0);
      Step();
    }
  }

  std::mt19937_64 random_;
  Scheduler::Options options_;
  int num_layers_;
  int num_pages_;
  std::unique_ptr<SchedulerModel> model_;
  std::vector<int32_t> shared_prompts_[3];
};

TEST(SchedulerPropertyTest, RandomOperationsFromFirstToLast) {
  std::map<std::string, int64_t> seen;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomRun run(seed);
    run.Run(1000);
    if (HasFailure()) return;
    for (const auto& [what, count] : run.seen()) seen[what] += count;
  }
  EXPECT_GT(seen["steps"], 60000);
  for (const char* what :
       {"client switches", "planned switches", "demotions",
        "starts at the floor", "pre-emptions", "admitted again",
        "positions reused", "positions found again", "wasted rows"}) {
    EXPECT_GT(seen[what], 100) << what;
  }
}

}  // namespace
}  // namespace strata
