#include <utility>

#include "base/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "tests/gpu/bench_backend.h"

namespace strata {

absl::StatusOr<BenchBackend> OpenBenchBackend(
    const cuda::CudaOptions& options) {
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<cuda::CudaBackend> backend,
                          cuda::CudaBackend::Create(/*device=*/0, options));
  return BenchBackend{std::move(backend), "own kernels for prompts"};
}

}  // namespace strata
