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
#include "tests/gpu/bench_device.h"
#include "tests/gpu/kernel_cases.h"
#include "tests/gpu/model_cases.h"

namespace {

strata::BenchBackend Open(const strata::cuda::CudaOptions& options) {
  auto opened = strata::OpenBenchBackend(options);
  if (!opened.ok()) {
    strata::Die("the device", opened.status().ToString().c_str());
  }
  return *std::move(opened);
}

}  // namespace

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
  const strata::BenchShape shape =
      is_tiny ? strata::TinyShape() : strata::Qwen3Shape();
  {
    const strata::BenchBackend opened = Open({});
    std::printf("%s; %s\n\n", opened.backend->device().c_str(),
                opened.gemm.c_str());
  }
  const strata::ResultTable table(json);
  const double copy_rate = MeasureCopy(shape, table);
  for (const auto format :
       {strata::cuda::KvFormat::kBf16, strata::cuda::KvFormat::kFp8}) {
    MeasureAttention(shape, format, copy_rate, table);
  }
  MeasureProducts(shape, copy_rate, table);
  strata::ModelBench(shape, Open({.fp8_weights = true}).backend, copy_rate,
                     table)
      .MeasureWeights("decode fp8 weights");
  strata::ModelBench model(shape, Open({}).backend, copy_rate, table);
  model.MeasureDecoding();
  model.MeasurePrompts();
  model.MeasureHost();
}
