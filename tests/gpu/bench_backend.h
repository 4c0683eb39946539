#ifndef TESTS_GPU_BENCH_BACKEND_H_
#define TESTS_GPU_BENCH_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/cuda/cuda_backend.h"

namespace strata {

// The backend that the server would open, and what multiplies its prompts.
struct BenchBackend {
  std::unique_ptr<Backend> backend;
  std::string gemm;
};

// bench_backend_gpu.cc or bench_backend_on_cpu.cc.
absl::StatusOr<BenchBackend> OpenBenchBackend(
    const cuda::CudaOptions& options = {});

}  // namespace strata

#endif  // TESTS_GPU_BENCH_BACKEND_H_
