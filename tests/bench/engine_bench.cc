// Measures the whole engine in one process: prefill, decode at several
// contexts, many streams, under one strategy.
//
//   bazel run //tests/bench:engine_bench -- --model=MODEL.gguf --threads=2
//   --strategy=every=2
//
// Each figure is the best of --reps runs, in tokens per second of all streams
// together; the same works as llama.cpp's peer script measures, so that the
// figures stand side by side.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "base/check.h"
#include "tests/testing/tiny_engine.h"

ABSL_FLAG(std::string, model, "", "a .gguf file or a Hugging Face directory");
ABSL_FLAG(int, threads, 2, "of the backend");
ABSL_FLAG(int, reps, 3, "runs of each work; the best counts");
ABSL_FLAG(std::string, strategy, "full",
          "the KV-sharing strategy of all streams");
ABSL_FLAG(bool, exact_f32, false, "compute and cache in f32");

namespace strata {
namespace {

constexpr int kPageTokens = 16;
constexpr int kDecodeSteps = 64;

struct Work {
  bool is_prefill;
  int streams;
  int context;
};
constexpr Work kWorks[] = {{true, 1, 512},   {true, 1, 2048},  {false, 1, 64},
                           {false, 1, 1024}, {false, 1, 4096}, {false, 4, 256},
                           {false, 16, 256}};

// When each token of a stream came.
class TimingSink final : public TokenSink {
 public:
  void OnDelta(SequenceDelta delta) override {
    times.insert(times.end(), delta.tokens.size(), absl::Now());
  }
  void OnEnd(absl::Status status) override {
    absl::MutexLock lock(&mu_);
    STRATA_CHECK(status.ok());
    ended_ = true;
  }
  void Wait() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&ended_));
  }

  std::vector<absl::Time> times;  // read after Wait

 private:
  absl::Mutex mu_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

double RunOnce(const TinyEngine& tiny, const Work& work) {
  const int vocab = tiny.engine->limits().vocab_size;
  const absl::Time begin = absl::Now();
  std::vector<std::shared_ptr<TimingSink>> sinks;
  for (int s = 0; s < work.streams; ++s) {
    std::vector<int32_t> prompt(work.context);
    for (int i = 0; i < work.context; ++i)
      prompt[i] = (100 + (i * 7 + s) % 4000) % vocab;
    sinks.push_back(std::make_shared<TimingSink>());
    auto request = tiny.Greedy(std::move(prompt), absl::GetFlag(FLAGS_strategy),
                               work.is_prefill ? 1 : kDecodeSteps + 1);
    // Each run computes all of its prompt, whatever ran before.
    request.bypass_prefix_cache = true;
    tiny.engine->Submit(std::move(request), sinks.back());
  }
  for (const auto& sink : sinks) sink->Wait();
  if (work.is_prefill) {
    return work.context / absl::ToDoubleSeconds(sinks[0]->times[0] - begin);
  }
  // Streams begin one after another: the rate is that of the time in which all
  // of them decode.
  absl::Time from = absl::InfinitePast(), to = absl::InfiniteFuture();
  for (const auto& sink : sinks) {
    from = std::max(from, sink->times.front());
    to = std::min(to, sink->times.back());
  }
  int64_t tokens = 0;
  for (const auto& sink : sinks) {
    tokens += std::ranges::count_if(
        sink->times, [&](absl::Time t) { return from < t && t <= to; });
  }
  return tokens / absl::ToDoubleSeconds(to - from);
}

}  // namespace

int Main() {
  const TinyEngine tiny({.model = absl::GetFlag(FLAGS_model),
                         .exact_f32 = absl::GetFlag(FLAGS_exact_f32),
                         .threads = absl::GetFlag(FLAGS_threads),
                         .num_pages = 65536,
                         .page_tokens = kPageTokens});
  for (const Work& work : kWorks) {
    double best = 0;
    for (int rep = 0; rep < absl::GetFlag(FLAGS_reps); ++rep) {
      best = std::max(best, RunOnce(tiny, work));
    }
    const std::string name = work.is_prefill
                                 ? "prefill_" + std::to_string(work.context)
                                 : "decode_" + std::to_string(work.streams) +
                                       "x" + std::to_string(work.context);
    std::printf("%-16s %9.1f tok/s\n", name.c_str(), best);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace strata

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures prefill and decode of the engine.");
  absl::ParseCommandLine(argc, argv);
  return strata::Main();
}
