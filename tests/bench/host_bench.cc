// What a step costs the host: plan, sample rows, commit, stop conditions, text,
// hand over, publish.  The real engine over a backend that computes nothing, so
// that all of a step's time is the host's.
//
//   bazel run //tests/bench:host_bench -- --model=MODEL.gguf
//
// Every stream decodes; each token is another one of the vocabulary, in turn.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "tests/testing/tiny_engine.h"

ABSL_FLAG(std::string, model, "", "a .gguf file or a Hugging Face directory");
ABSL_FLAG(int, reps, 5, "runs of each number of streams; the best counts");

namespace {

std::atomic<int64_t> num_allocations{0};

}  // namespace

// All of this process; while streams decode only the engine's thread allocates.
void* operator new(size_t size) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace strata {
namespace {

// Of nothing but its shape.
struct NullMatrix final : Matrix {
  explicit NullMatrix(const WeightView& view) : view(view) {}
  int64_t rows() const override { return view.rows; }
  int64_t cols() const override { return view.cols; }
  int64_t num_bytes() const override { return 0; }
  WeightView view;
};

// Computes nothing; samples the tokens of the vocabulary one after the other.
class NullBackend final : public Backend {
 public:
  std::string name() const override { return "null"; }
  std::string device() const override { return "nothing"; }
  std::string kv_format() const override { return "bf16"; }
  absl::StatusOr<int64_t> FreeBytes() const override {
    return int64_t{1} << 40;
  }
  absl::StatusOr<int64_t> PackedBytes(const WeightView&) const override {
    return 0;
  }
  absl::StatusOr<int64_t> Reserve(const KvLayout&) override { return 0; }
  std::unique_ptr<Matrix> Pack(const WeightView& view) override {
    return std::make_unique<NullMatrix>(view);
  }
  float* NewFloats(int64_t) override { return &memory_; }
  float* NewFloats(const WeightView&) override { return &memory_; }
  int64_t PageBytes(const KvLayout&) const override { return 4096; }
  absl::Status CreateKvPages(const KvLayout&) override {
    return absl::OkStatus();
  }
  void Embed(const EmbedArgs&) override {}
  void Qkv(const QkvArgs&) override {}
  void Attention(const AttentionArgs&) override {}
  void Linear(const LinearArgs&) override {}
  void GatedMlp(const GatedMlpArgs&) override {}
  void Gather(const GatherArgs&) override {}
  void Head(const HeadArgs&) override {}
  void Sample(const SampleArgs& args) override {
    for (size_t i = 0; i < args.rows.size(); ++i) {
      args.out[i] = SampledToken();
      args.out[i].token = next_++ % args.vocab;
    }
  }
  void AllReduce(const AllReduceArgs&) override {}
  absl::Status Submit() override { return absl::OkStatus(); }
  absl::Status Wait() override { return absl::OkStatus(); }

 private:
  float memory_ = 0;
  int32_t next_ = 0;
};

// When the first and the last token came, and the allocations until then.
class EdgeSink final : public TokenSink {
 public:
  struct Edge {
    absl::Time time;
    int64_t allocations = 0;
  };

  void OnDelta(SequenceDelta) override {
    last_ = {absl::Now(), num_allocations.load(std::memory_order_relaxed)};
    if (num_++ == 0) first_ = last_;
  }
  void OnEnd(absl::Status) override { ended_.store(true); }
  void Wait() const {
    while (!ended_.load()) absl::SleepFor(absl::Milliseconds(1));
  }
  const Edge& first() const { return first_; }
  const Edge& last() const { return last_; }

 private:
  Edge first_, last_;
  int64_t num_ = 0;
  std::atomic<bool> ended_{false};
};

struct Cost {
  double micros = 1e9;
  double allocations = 0;
};

// Of a step in which all streams decode.
Cost Measure(const TinyEngine& tiny, int num_streams) {
  constexpr int kTokens = 500, kPrompt = 16;
  std::vector<std::shared_ptr<EdgeSink>> sinks;
  for (int s = 0; s < num_streams; ++s) {
    sinks.push_back(std::make_shared<EdgeSink>());
    tiny.engine->Submit(
        tiny.Greedy(std::vector<int32_t>(kPrompt, s), "every=2", kTokens),
        sinks.back());
  }
  for (const auto& sink : sinks) sink->Wait();
  // Those of one step come together; the last to begin and the first to end
  // bound the steps with all of them.
  const auto& begin = sinks.back()->first();
  const auto& end = sinks.front()->last();
  return {
      absl::ToDoubleMicroseconds(end.time - begin.time) / (kTokens - 1),
      static_cast<double>(end.allocations - begin.allocations) / (kTokens - 1)};
}

int Main() {
  const TinyEngine tiny(
      {.model = absl::GetFlag(FLAGS_model),
       .exact_f32 = false,
       .num_pages = 1 << 20,
       .page_tokens = 16,
       .max_sequences = 1024,
       .max_batched_tokens = 4096,
       .max_queued_requests = 4096,
       .has_text = true,
       .make_backend = [] { return std::make_unique<NullBackend>(); }});
  std::printf("%8s %12s %12s %12s\n", "streams", "us/step", "us/token",
              "new/token");
  for (const int streams : {1, 16, 64, 256}) {
    Cost best;
    for (int i = 0; i < absl::GetFlag(FLAGS_reps); ++i) {
      const Cost cost = Measure(tiny, streams);
      if (cost.micros < best.micros) best = cost;
    }
    std::printf("%8d %12.1f %12.3f %12.2f\n", streams, best.micros,
                best.micros / streams, best.allocations / streams);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures what a step costs the host.");
  absl::ParseCommandLine(argc, argv);
  return strata::Main();
}
