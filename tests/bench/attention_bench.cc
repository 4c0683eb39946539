// Attention of the CPU backend on bf16 pages: decode against the machine's read
// rate, prefill against its multiply-add rate in f32 (which vdpbf16ps may
// exceed).
//
//   bazel run //tests/bench:attention_bench

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/kv_pages.h"
#include "kernels/cpu/thread_team.h"

namespace strata::cpu {
namespace {

constexpr int kPageTokens = 16;

int NumThreads() {
  return static_cast<int>(std::thread::hardware_concurrency());
}

// One chunk of a sequence, whose layers lie in pages of random order.
class AttentionRun {
 public:
  // `layers` is the number of slots, read in turn, so that caches do not hold
  // them.
  AttentionRun(int q_heads, int kv_heads, int head_dim, int first_position,
               int num_rows, int layers)
      : q_heads_(q_heads),
        layers_(layers),
        team_(NumThreads()),
        scratch_(NumThreads(), DetectIsa()) {
    const int tokens = first_position + num_rows;
    const int blocks = (tokens + kPageTokens - 1) / kPageTokens;
    const KvLayout layout = {.num_pages = int64_t{layers} * blocks,
                             .page_tokens = kPageTokens,
                             .kv_heads = kv_heads,
                             .head_dim = head_dim};
    auto pages = KvPages::Create(layout, KvType::kBF16);
    STRATA_CHECK(pages.ok());
    pages_ = *std::move(pages);
    page_table_.resize(layout.num_pages);
    std::iota(page_table_.begin(), page_table_.end(), 0);
    std::mt19937_64 random(1);
    std::shuffle(page_table_.begin(), page_table_.end(), random);
    std::normal_distribution<float> normal;
    std::vector<float> row(head_dim);
    for (int page = 0; page < layout.num_pages; ++page) {
      for (float& x : row) x = normal(random);
      for (int h = 0; h < kv_heads; ++h) {
        for (int t = 0; t < kPageTokens; ++t)
          pages_->Store(page, h, t, row.data(), row.data());
      }
    }
    for (int r = 0; r < num_rows; ++r) positions_.push_back(first_position + r);
    chunk_of_.assign(num_rows, 0);
    slot_of_.resize(layers);
    std::iota(slot_of_.begin(), slot_of_.end(), 0);
    chunk_ = {.first_row = 0,
              .num_rows = num_rows,
              .first_position = first_position,
              .strategy = 0,
              .page_table = page_table_.data(),
              .blocks_stride = blocks};
    q_.resize(int64_t{num_rows} * q_heads * head_dim);
    for (float& x : q_) x = normal(random);
    out_.resize(q_.size());
    cached_bytes_ = int64_t{tokens} * kv_heads * head_dim * 4;
    for (const int32_t position : positions_) {
      multiply_adds_ += int64_t{position + 1} * q_heads * head_dim * 2;
    }
  }

  void Next() {
    const Step step = {.positions = positions_,
                       .chunk_of = chunk_of_,
                       .chunks = {&chunk_, 1},
                       .slot_of = slot_of_.data(),
                       .num_layers = layers_};
    const AttentionArgs args = {.layer = layer_++ % layers_,
                                .step = &step,
                                .q = q_.data(),
                                .out = out_.data(),
                                .q_heads = q_heads_,
                                .scale = 0.1f};
    team_.Run([&](const Worker& worker) {
      Attention(args, *pages_, scratch_, worker);
    });
  }

  int64_t cached_bytes() const { return cached_bytes_; }
  int64_t multiply_adds() const { return multiply_adds_; }

 private:
  const int q_heads_;
  const int layers_;
  ThreadTeam team_;
  AttentionScratch scratch_;
  std::unique_ptr<KvPages> pages_;
  std::vector<int32_t> page_table_, positions_, chunk_of_, slot_of_;
  StepChunk chunk_;
  std::vector<float> q_, out_;
  int64_t cached_bytes_ = 0;
  int64_t multiply_adds_ = 0;
  int layer_ = 0;
};

// What the machine can do: all threads sum 256 MiB.
void BM_Read(benchmark::State& state) {
  ThreadTeam team(NumThreads());
  const std::vector<uint64_t> data(32 << 20, 1);
  std::vector<uint64_t> sums(64 * NumThreads());
  for (auto _ : state) {
    team.Run([&](const Worker& worker) {
      const Share share = worker.ShareOf(data.size(), 64);
      uint64_t lanes[32] = {};
      for (int64_t i = share.begin; i < share.end; i += 32) {
        for (int k = 0; k < 32; ++k) lanes[k] += data[i + k];
      }
      sums[64 * worker.id] += std::accumulate(lanes, lanes + 32, uint64_t{0});
    });
  }
  benchmark::DoNotOptimize(sums.data());
  state.SetBytesProcessed(state.iterations() * data.size() * 8);
}
BENCHMARK(BM_Read)->UseRealTime();

// Arguments: query heads, KV heads, head_dim, context.
void BM_Decode(benchmark::State& state) {
  const int64_t bytes_per_layer =
      state.range(3) * state.range(1) * state.range(2) * 4;
  AttentionRun run(state.range(0), state.range(1), state.range(2),
                   state.range(3) - 1, 1,
                   /*layers=*/(int64_t{256} << 20) / bytes_per_layer + 1);
  for (auto _ : state) run.Next();
  state.SetBytesProcessed(state.iterations() * run.cached_bytes());
}
BENCHMARK(BM_Decode)
    ->Args({9, 3, 64, 1024})
    ->Args({9, 3, 64, 4096})
    ->Args({9, 3, 64, 8192})
    ->Args({32, 8, 128, 1024})
    ->Args({32, 8, 128, 4096})
    ->Args({32, 8, 128, 8192})
    ->UseRealTime();

// Arguments: query heads, KV heads, head_dim, cached positions; 512 rows.
void BM_Prefill(benchmark::State& state) {
  AttentionRun run(state.range(0), state.range(1), state.range(2),
                   state.range(3), 512,
                   /*layers=*/8);
  for (auto _ : state) run.Next();
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * run.multiply_adds() * state.iterations(),
                         benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Prefill)
    ->Args({9, 3, 64, 0})
    ->Args({9, 3, 64, 2048})
    ->Args({32, 8, 128, 0})
    ->Args({32, 8, 128, 2048})
    ->UseRealTime();

}  // namespace
}  // namespace strata::cpu

BENCHMARK_MAIN();
