// What the scheduler adds to a step: Plan and Commit, at a steady number of
// running and waiting sequences of eight strategies of a model of 30 layers.
// Sequences that end are replaced, outside the measured time.

#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/scheduler.h"

namespace strata {
namespace {

class Load {
 public:
  Load(const Scheduler::Options& options, int64_t num_pages)
      : pool_(num_pages), scheduler_(options, &pool_) {}

  void Add() {
    constexpr const char* kSpecs[] = {"full",     "every=2",  "every=3",
                                      "every=4",  "keep=0.7", "keep=0.25",
                                      "prefix=9", "every=30"};
    auto entry = std::make_unique<Entry>(
        *SharingStrategy::Parse(kSpecs[random_() % 8], 30));
    entry->request.prompt.resize(16 + random_() % 512);
    entry->request.stopping.max_tokens = 1 + random_() % 512;
    Sequence* sequence = &entry->Start();
    scheduler_.Add(sequence, now_);
    entries_.emplace(sequence, std::move(entry));
  }

  // Seconds that Plan and Commit took.
  double Step() {
    const auto begin = std::chrono::steady_clock::now();
    scheduler_.Plan(now_, &plan_);
    scheduler_.Commit(plan_);
    const std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - begin;
    now_ += absl::Milliseconds(10);
    for (const BatchPlan::Chunk& chunk : plan_.chunks) {
      Sequence* sequence = chunk.sequence;
      if (chunk.num_wanted == 0) continue;
      sequence->tokens.push_back(1);
      if (sequence->num_generated() < sequence->request.stopping.max_tokens) {
        continue;
      }
      scheduler_.Remove(sequence);
      entries_.erase(sequence);
      Add();
    }
    return taken.count();
  }

  const Scheduler& scheduler() const { return scheduler_; }
  const BatchPlan& plan() const { return plan_; }

 private:
  struct Entry {
    explicit Entry(SharingStrategy strategy) : request(std::move(strategy)) {}
    Sequence& Start() {
      sequence = std::make_unique<Sequence>(
          nullptr, request, 0, SequenceOutput(nullptr, request, {}));
      return *sequence;
    }
    Request request;
    std::unique_ptr<Sequence> sequence;
  };

  std::mt19937_64 random_{1};
  KvPool pool_;
  Scheduler scheduler_;
  BatchPlan plan_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::unordered_map<Sequence*, std::unique_ptr<Entry>> entries_;
};

void Measure(benchmark::State& state, const Scheduler::Options& options,
             int64_t num_pages, int num_sequences) {
  Load load(options, num_pages);
  for (int i = 0; i < num_sequences; ++i) load.Add();
  for (int i = 0; i < 600; ++i) load.Step();
  double num_running = 0, num_rows = 0;
  for (auto _ : state) {
    state.SetIterationTime(load.Step());
    num_running += load.scheduler().num_running();
    num_rows += load.plan().num_rows;
  }
  using benchmark::Counter;
  state.counters["running"] = Counter(num_running, Counter::kAvgIterations);
  state.counters["rows"] = Counter(num_rows, Counter::kAvgIterations);
  state.counters["waiting"] = load.scheduler().num_waiting();
}

// Slots are short: no waiting sequence is looked at while all are taken.
void BM_FewSlots(benchmark::State& state) {
  const int num_running = static_cast<int>(state.range(0));
  const int num_waiting = static_cast<int>(state.range(1));
  Measure(
      state,
      {.max_sequences = num_running, .max_batched_tokens = num_running + 2048},
      num_running * int64_t{2000}, num_running + num_waiting);
}
BENCHMARK(BM_FewSlots)
    ->Args({64, 0})
    ->Args({64, 10000})
    ->Args({1024, 0})
    ->Args({1024, 10000})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// Memory is short: each step looks for what fits.
void BM_FewPages(benchmark::State& state) {
  const int num_running = static_cast<int>(state.range(0));
  Measure(state,
          {.max_sequences = 4096, .max_batched_tokens = num_running + 2048},
          num_running * int64_t{320}, num_running + 10000);
}
BENCHMARK(BM_FewPages)
    ->Arg(64)
    ->Arg(1024)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace strata

BENCHMARK_MAIN();
