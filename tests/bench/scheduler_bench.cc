// What the scheduler adds to a step: Plan and Commit, at a steady number of
// running and waiting sequences of eight strategies of a model of 30 layers.
// Sequences that end are replaced, outside the measured time.

#include <benchmark/benchmark.h>

#include <algorithm>
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

constexpr int kLayers = 30;

// What requests are like.
struct Traffic {
  int min_prompt = 16;
  int max_prompt = 527;
  int max_tokens = 512;     // 1 to so many
  int num_shared = 0;       // prompts begin with one of so many ...
  int shared_length = 0;    // ... texts of so many tokens
  bool has_floor = false;   // to one leader
  bool is_replaced = true;  // whether another comes for one that ends
};

class Load {
 public:
  Load(const Scheduler::Options& options, int64_t num_pages,
       const Traffic& traffic)
      : traffic_(traffic),
        pool_(num_pages, options.page_tokens),
        scheduler_(options, &pool_) {}

  // One of the traffic.
  void Add() {
    constexpr const char* kSpecs[] = {"full",     "every=2",  "every=3",
                                      "every=4",  "keep=0.7", "keep=0.25",
                                      "prefix=9", "every=30"};
    const char* const spec = kSpecs[random_() % 8];
    const size_t num_prompt =
        traffic_.min_prompt +
        random_() % (traffic_.max_prompt - traffic_.min_prompt + 1);
    std::vector<int32_t> prompt;
    if (traffic_.num_shared > 0) {
      prompt.assign(traffic_.shared_length, random_() % traffic_.num_shared);
    }
    // No two prompts go on alike.
    while (prompt.size() < num_prompt) prompt.push_back(next_token_++);
    Add(spec, std::move(prompt), 1 + random_() % traffic_.max_tokens);
  }

  void Add(const char* spec, std::vector<int32_t> prompt, int max_tokens) {
    auto entry =
        std::make_unique<Entry>(*SharingStrategy::Parse(spec, kLayers));
    Request& request = entry->request;
    request.prompt = std::move(prompt);
    request.stopping.max_tokens = max_tokens;
    if (traffic_.has_floor) {
      request.floor = *SharingStrategy::Parse("every=30", kLayers);
    }
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
    scheduler_.TakeEvents(&events_);
    for (const SchedulerEvent& event : events_) {
      num_demotions_ += event.kind == SchedulerEvent::Kind::kSwitched;
      num_preemptions_ += event.kind == SchedulerEvent::Kind::kPreempted;
    }
    for (const BatchPlan::Chunk& chunk : plan_.chunks) {
      Sequence* sequence = chunk.sequence;
      if (chunk.num_wanted == 0) continue;
      sequence->Append(1);
      if (sequence->num_generated() < sequence->request.stopping.max_tokens) {
        continue;
      }
      num_reused_ += sequence->num_reused;
      scheduler_.Remove(sequence);
      entries_.erase(sequence);
      if (traffic_.is_replaced) Add();
    }
    return taken.count();
  }

  const Scheduler& scheduler() const { return scheduler_; }
  const BatchPlan& plan() const { return plan_; }
  int64_t num_reused() const { return num_reused_; }
  int64_t num_demotions() const { return num_demotions_; }
  int64_t num_preemptions() const { return num_preemptions_; }

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

  const Traffic traffic_;
  std::mt19937_64 random_{1};
  KvPool pool_;
  Scheduler scheduler_;
  BatchPlan plan_;
  std::vector<SchedulerEvent> events_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::unordered_map<Sequence*, std::unique_ptr<Entry>> entries_;
  int32_t next_token_ = 1000;
  int64_t num_reused_ = 0;
  int64_t num_demotions_ = 0;
  int64_t num_preemptions_ = 0;
};

void Measure(benchmark::State& state, Load* load) {
  double num_running = 0, num_rows = 0;
  const int64_t num_reused = load->num_reused();
  const int64_t num_demotions = load->num_demotions();
  const int64_t num_preemptions = load->num_preemptions();
  std::vector<double> micros;
  for (auto _ : state) {
    const double seconds = load->Step();
    state.SetIterationTime(seconds);
    micros.push_back(seconds * 1e6);
    num_running += load->scheduler().num_running();
    num_rows += load->plan().num_rows;
  }
  using benchmark::Counter;
  const auto per_step = [](double count) {
    return Counter(count, Counter::kAvgIterations);
  };
  state.counters["running"] = per_step(num_running);
  state.counters["rows"] = per_step(num_rows);
  state.counters["waiting"] = load->scheduler().num_waiting();
  state.counters["reused"] = per_step(load->num_reused() - num_reused);
  state.counters["demoted"] = per_step(load->num_demotions() - num_demotions);
  state.counters["preempted"] =
      per_step(load->num_preemptions() - num_preemptions);
  std::sort(micros.begin(), micros.end());
  state.counters["p99_us"] = micros[micros.size() * 99 / 100];
  state.counters["max_us"] = micros.back();
}

void MeasureTraffic(benchmark::State& state, const Scheduler::Options& options,
                    int64_t num_pages, int num_sequences,
                    const Traffic& traffic = {}) {
  Load load(options, num_pages, traffic);
  for (int i = 0; i < num_sequences; ++i) load.Add();
  for (int i = 0; i < 600; ++i) load.Step();
  Measure(state, &load);
}

// Slots are short: no waiting sequence is looked at while all are taken.
void BM_FewSlots(benchmark::State& state) {
  const int num_running = static_cast<int>(state.range(0));
  const int num_waiting = static_cast<int>(state.range(1));
  MeasureTraffic(
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

// Memory is short: each step looks for what fits.  With floors there is room
// for as many as may run.
void FewPages(benchmark::State& state, bool optimistic,
              const Traffic& traffic) {
  const int num_running = static_cast<int>(state.range(0));
  MeasureTraffic(state,
                 {.max_sequences = traffic.has_floor ? num_running : 4096,
                  .max_batched_tokens = num_running + 2048,
                  .optimistic = optimistic},
                 num_running * int64_t{320}, num_running + 10000, traffic);
}
#define STRATA_FEW_PAGES(name, optimistic, ...)                       \
  BENCHMARK_CAPTURE(FewPages, name, optimistic, Traffic{__VA_ARGS__}) \
      ->Arg(64)                                                       \
      ->Arg(1024)                                                     \
      ->UseManualTime()                                               \
      ->Unit(benchmark::kMicrosecond)
STRATA_FEW_PAGES(plain, false);
STRATA_FEW_PAGES(optimistic, true);
STRATA_FEW_PAGES(floors, false, .has_floor = true);
STRATA_FEW_PAGES(optimistic_floors, true, .has_floor = true);
STRATA_FEW_PAGES(shared_prompts, false, .min_prompt = 400, .max_prompt = 912,
                 .num_shared = 8, .shared_length = 400);

// Ten thousand wait with a context of 32K tokens that the prefix cache has, and
// lack a few pages: what is in the cache is looked up again seldom.
void BM_LongContextsWait(benchmark::State& state) {
  const int num_running = static_cast<int>(state.range(0));
  constexpr int kPageTokens = 16;
  constexpr int kLong = 2048;      // blocks
  constexpr int kLasting = 20000;  // positions, longer than the measurement
  const int64_t num_pages =
      num_running * int64_t{kLasting / kPageTokens} + int64_t{kLong} * kLayers;
  Load load({.max_sequences = 4096, .max_batched_tokens = num_running + 2048},
            num_pages, {.is_replaced = false});
  for (int i = 0; i < num_running; ++i) {
    load.Add("every=30", std::vector<int32_t>(16, 1000 + i), kLasting - 15);
  }
  const std::vector<int32_t> context(kLong * kPageTokens, 1);
  load.Add("full", context, 1);
  for (int i = 0; i < 100; ++i) load.Step();  // it ends and leaves its pages
  for (int i = 0; i < 10000; ++i) load.Add("full", context, 33);
  for (int i = 0; i < 200; ++i) load.Step();
  Measure(state, &load);
}
BENCHMARK(BM_LongContextsWait)
    ->Arg(64)
    ->Arg(1024)
    ->Iterations(5000)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace strata

BENCHMARK_MAIN();
