// Measures the whole engine in one process: prefill, decode at several
// contexts, many streams, under one strategy.
//
//   bazel run //tests/bench:engine_bench --
//       --model=MODEL.gguf --threads=2 --strategy=every=2
//
// Each figure is the best of --reps runs, in tokens per second of all streams
// together; the same works as llama.cpp's peer script measures, so that the
// figures stand side by side.
//
// With --interactive (./strata bench speed) it measures what it is asked for.
// Once the model is loaded it prints a line of facts, then answers every line
// of standard input, "WORK STRATEGY" as in "decode_16x256 every=2", with one
// run's tokens per second, and "read_bandwidth" with GB/s.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "base/check.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/thread_team.h"
#include "tests/testing/tiny_engine.h"

ABSL_FLAG(std::string, model, "", "a .gguf file or a Hugging Face directory");
ABSL_FLAG(int, threads, 2, "of the backend");
ABSL_FLAG(int, reps, 3, "runs of each work; the best counts");
ABSL_FLAG(std::string, strategy, "full",
          "the KV-sharing strategy of all streams");
ABSL_FLAG(bool, exact_f32, false, "compute and cache in f32");
ABSL_FLAG(bool, interactive, false, "measure what standard input asks for");

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

std::string NameOf(const Work& work) {
  const std::string context = std::to_string(work.context);
  if (work.is_prefill) return "prefill_" + context;
  return "decode_" + std::to_string(work.streams) + "x" + context;
}

// All of `text`, a number above 0; 0 if it is none.
int ParsePositive(std::string_view text) {
  int value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_all = end == text.data() + text.size();
  return error == std::errc() && is_all && value > 0 ? value : 0;
}

// The inverse of NameOf.
std::optional<Work> ParseWork(std::string_view name) {
  constexpr std::string_view kPrefill = "prefill_", kDecode = "decode_";
  Work work = {name.starts_with(kPrefill), 1, 0};
  if (work.is_prefill) {
    name.remove_prefix(kPrefill.size());
  } else {
    const size_t x = name.find('x');
    if (!name.starts_with(kDecode) || x == name.npos) return std::nullopt;
    work.streams =
        ParsePositive(name.substr(kDecode.size(), x - kDecode.size()));
    name.remove_prefix(x + 1);
  }
  work.context = ParsePositive(name);
  if (work.streams == 0 || work.context == 0) return std::nullopt;
  return work;
}

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

// Tokens per second.
double RunOnce(const TinyEngine& tiny, const Work& work,
               const std::string& strategy) {
  const int vocab = tiny.engine->limits().vocab_size;
  const absl::Time begin = absl::Now();
  std::vector<std::shared_ptr<TimingSink>> sinks;
  for (int s = 0; s < work.streams; ++s) {
    std::vector<int32_t> prompt(work.context);
    for (int i = 0; i < work.context; ++i)
      prompt[i] = (100 + (i * 7 + s) % 4000) % vocab;
    sinks.push_back(std::make_shared<TimingSink>());
    auto request = tiny.Greedy(std::move(prompt), strategy,
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

void MeasureAll(const TinyEngine& tiny) {
  for (const Work& work : kWorks) {
    double best = 0;
    for (int rep = 0; rep < absl::GetFlag(FLAGS_reps); ++rep) {
      best = std::max(best, RunOnce(tiny, work, absl::GetFlag(FLAGS_strategy)));
    }
    std::printf("%-16s %9.1f tok/s\n", NameOf(work).c_str(), best);
    std::fflush(stdout);
  }
}

// What a step reads: all weights once, as they are packed, and for every layer
// the keys and values of the context, whichever layer they are of.
void PrintFacts(const TinyEngine& tiny) {
  const ModelConfig& config = tiny.checkpoint->config;
  const auto packed = PackedModelBytes(*tiny.checkpoint, *tiny.backend);
  const auto table = tiny.backend->TableBytes(tiny.checkpoint->embedding);
  STRATA_CHECK(packed.ok() && table.ok());
  const int64_t token_page_bytes = tiny.page_bytes / kPageTokens;
  std::printf(
      "{\"weight_format\": \"%s\", \"weight_bytes\": %lld, "
      "\"kv_read_bytes_per_token\": %lld, \"max_context\": %d}\n",
      tiny.checkpoint->weight_format.c_str(),
      static_cast<long long>(*packed - *table),
      static_cast<long long>(token_page_bytes * config.num_layers),
      static_cast<int>(config.max_positions));
  std::fflush(stdout);
}

// False where it is no request.
bool Answer(const TinyEngine& tiny, std::string_view line) {
  double figure;
  if (line == "read_bandwidth") {
    cpu::ThreadTeam team(absl::GetFlag(FLAGS_threads));
    figure = cpu::ReadGigabytes(team);
  } else {
    const size_t space = line.find(' ');
    const std::optional<Work> work = ParseWork(line.substr(0, space));
    if (!work.has_value() || space == line.npos) return false;
    const std::string strategy(line.substr(space + 1));
    if (!SharingStrategy::Parse(strategy, tiny.checkpoint->config.num_layers)
             .ok()) {
      return false;
    }
    figure = RunOnce(tiny, *work, strategy);
  }
  std::printf("%.2f\n", figure);
  std::fflush(stdout);
  return true;
}

}  // namespace

int Main() {
  const TinyEngine tiny({.model = absl::GetFlag(FLAGS_model),
                         .exact_f32 = absl::GetFlag(FLAGS_exact_f32),
                         .threads = absl::GetFlag(FLAGS_threads),
                         .num_pages = 65536,
                         .page_tokens = kPageTokens});
  if (!absl::GetFlag(FLAGS_interactive)) {
    MeasureAll(tiny);
    return 0;
  }
  PrintFacts(tiny);
  for (std::string line; std::getline(std::cin, line);) {
    if (!Answer(tiny, line)) {
      std::fprintf(stderr, "no work and strategy: %s\n", line.c_str());
      return 2;
    }
  }
  return 0;
}

}  // namespace strata

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures prefill and decode of the engine.");
  absl::ParseCommandLine(argc, argv);
  return strata::Main();
}
