// Products of every weight format as a fraction of what the machine can do,
// measured in the same run.
//
//   bazel run //tests/bench:kernel_bench --
//       --threads=2 --isa=avx512 --benchmark_filter=one_row
//
// one_row, few_rows (16): GB/s of weights, of_read = the share of a plain read
// loop's; these weights lie in memory (copies of a matrix fill 256 MB), not in
// a cache.  few_rows, many_rows (512): Gop/s (a multiply and an add are two),
// of_peak = the share of the instruction's peak.  barrier: the time of a Sync.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/thread_team.h"
#include "tests/kernels/cpu/weights.h"

namespace strata::cpu {
namespace {

struct Machine {
  double read;  // GB/s
  double f32;   // Gop/s
  double bf16;
  double int8;
};

struct Bench {
  ThreadTeam& team;
  Isa isa;
  Machine machine;
};

struct Shape {
  int64_t outputs;
  int64_t inputs;
};

constexpr int64_t kWeightBytes = int64_t{256} << 20;
constexpr int kFewRows = 16;

double PeakOf(const Bench& bench, DType type) {
  if (BlockElements(type) == 32) return bench.machine.int8;
  return type == DType::kBF16 ? bench.machine.bf16 : bench.machine.f32;
}

void Product(benchmark::State& state, const Bench& bench, DType type,
             Shape shape, int rows) {
  std::mt19937_64 random(1);
  const TestWeights weights(type, shape.outputs, shape.inputs, random);
  // Weights of many rows are read once for all, so one matrix is as good as
  // many.
  const bool from_memory = rows <= kFewRows;
  const int64_t copies =
      from_memory ? kWeightBytes / weights.view.NumBytes() + 1 : 1;
  WeightArena arena;
  std::vector<std::unique_ptr<PackedMatrix>> matrices;
  for (int64_t i = 0; i < copies; ++i) {
    matrices.push_back(std::make_unique<PackedMatrix>(weights.view, arena));
    bench.team.Run([&](const Worker& worker) {
      matrices.back()->Fill(weights.view, worker);
    });
  }
  const std::vector<float> x = RandomFloats(rows * shape.inputs, random);
  std::vector<float> y(rows * shape.outputs);
  Matmul matmul(bench.isa, /*exact_f32=*/false, bench.team.size());
  matmul.Reserve(rows, shape.inputs);
  for (auto _ : state) {
    bench.team.Run([&](const Worker& worker) {
      for (const auto& matrix : matrices) {
        const MatmulOutput output = {.w = matrix.get(), .y = y.data()};
        matmul.Run({.x = x.data(), .cols = shape.inputs, .num_rows = rows},
                   {&output, 1}, worker);
        worker.Sync();
      }
    });
  }
  const double products = static_cast<double>(state.iterations() * copies);
  using benchmark::Counter;
  if (from_memory) {
    const double gigabytes = 1e-9 * products * matrices[0]->num_bytes();
    state.counters["GB/s"] = Counter(gigabytes, Counter::kIsRate);
    state.counters["of_read"] =
        Counter(gigabytes / bench.machine.read, Counter::kIsRate);
  }
  if (rows > 1) {
    const double gigaops =
        2e-9 * products * rows * shape.outputs * shape.inputs;
    state.counters["Gop/s"] = Counter(gigaops, Counter::kIsRate);
    const double peak = PeakOf(bench, type);
    if (peak > 0)
      state.counters["of_peak"] = Counter(gigaops / peak, Counter::kIsRate);
  }
}

void Barrier(benchmark::State& state, const Bench& bench) {
  constexpr int kSyncs = 1000;
  for (auto _ : state) {
    bench.team.Run([&](const Worker& worker) {
      for (int i = 0; i < kSyncs; ++i) worker.Sync();
    });
  }
  state.counters["sync"] = benchmark::Counter(
      static_cast<double>(state.iterations() * kSyncs),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void Register(const Bench& bench) {
  benchmark::RegisterBenchmark("barrier", Barrier, bench)->UseRealTime();
  // SmolLM2-135M's matrices, and one of a large model.
  constexpr Shape kShapes[] = {
      {576, 576}, {1536, 576}, {576, 1536}, {49152, 576}, {4096, 4096}};
  const std::pair<const char*, int> kRows[] = {
      {"one_row", 1}, {"few_rows", kFewRows}, {"many_rows", 512}};
  for (const auto& [rows_name, rows] : kRows) {
    for (const DType type : kAllDTypes) {
      for (const Shape& shape : kShapes) {
        if (rows > kFewRows && shape.outputs > 10000)
          continue;  // the head takes few rows
        const std::string name =
            std::string(rows_name) + "/" + DTypeName(type) + "/" +
            std::to_string(shape.outputs) + "x" + std::to_string(shape.inputs);
        benchmark::RegisterBenchmark(name.c_str(), Product, bench, type, shape,
                                     rows)
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace
}  // namespace strata::cpu

int main(int argc, char** argv) {
  using strata::cpu::Isa;
  benchmark::Initialize(&argc, argv);
  int threads = 2;
  Isa isa = strata::cpu::DetectIsa();
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg.starts_with("--threads=")) {
      threads = std::atoi(argv[i] + std::strlen("--threads="));
    } else if (arg == "--isa=portable") {
      isa = Isa::kPortable;
    } else if (arg == "--isa=avx2") {
      isa = Isa::kAvx2;
    } else if (arg != "--isa=avx512") {
      std::fprintf(stderr, "unknown argument %s\n", argv[i]);
      return 1;
    }
  }
  if (threads < 1 || isa > strata::cpu::DetectIsa()) return 1;
  strata::cpu::ThreadTeam team(threads);
  const strata::cpu::Machine machine = {.read = ReadGigabytes(team),
                                        .f32 = F32Gigaflops(team, isa),
                                        .bf16 = Bf16Gigaflops(team, isa),
                                        .int8 = Int8Gigaops(team, isa)};
  std::printf(
      "%d threads, %s: read %.1f GB/s, f32 %.0f, bf16 %.0f, int8 %.0f Gop/s\n",
      threads, IsaName(isa), machine.read, machine.f32, machine.bf16,
      machine.int8);
  strata::cpu::Register({team, isa, machine});
  benchmark::RunSpecifiedBenchmarks();
}
