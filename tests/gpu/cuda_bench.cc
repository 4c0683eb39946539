// What a GPU does with a model of the Qwen3-8B shape and random weights: one
// Markdown table, and with --json=FILE the same as lines of JSON.
//
//   cuda_bench --json=cuda_bench.jsonl
//
// README.md says what the columns are.  --shape=tiny is for the simulator,
// whose times mean nothing.
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "tests/gpu/bench_backend.h"
#include "tests/gpu/kernel_cases.h"
#include "tests/gpu/model_cases.h"

int main(int argc, char** argv) {
  bool is_tiny = false;
  std::string json;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--json=")) {
      json = argument.substr(7);
    } else if (argument == "--shape=tiny") {
      is_tiny = true;
    } else if (argument != "--shape=qwen3-8b") {
      std::fprintf(stderr,
                   "usage: cuda_bench [--shape=qwen3-8b|tiny] [--json=FILE]\n");
      return 2;
    }
  }
  auto opened = strata::OpenBenchBackend();
  if (!opened.ok()) {
    std::fprintf(stderr, "cuda_bench: %s\n",
                 opened.status().ToString().c_str());
    return 1;
  }
  const strata::BenchShape shape =
      is_tiny ? strata::TinyShape() : strata::Qwen3Shape();
  std::printf("%s; %s\n\n", opened->backend->device().c_str(),
              opened->gemm.c_str());
  const strata::ResultTable table(json);
  const double copy_rate = MeasureCopy(shape, table);
  for (const auto format :
       {strata::cuda::KvFormat::kBf16, strata::cuda::KvFormat::kFp8}) {
    MeasureAttention(shape, format, copy_rate, table);
  }
  strata::ModelBench model(shape, std::move(opened->backend), copy_rate, table);
  model.MeasureDecoding();
  model.MeasurePrompts();
  model.MeasureHost();
}
