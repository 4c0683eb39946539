#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kernels/cuda/cublas_gemm.h"
#include "kernels/cuda/cuda_backend.h"
#include "tests/gpu/bench_backend.h"

namespace strata {

absl::StatusOr<BenchBackend> OpenBenchBackend(
    const cuda::CudaOptions& options) {
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<cuda::CudaBackend> backend,
                          cuda::CudaBackend::Create(/*device=*/0, options));
  absl::StatusOr<std::unique_ptr<cuda::GemmLibrary>> library =
      cuda::LoadCublasGemm();
  if (!library.ok()) {
    return BenchBackend{std::move(backend),
                        absl::StrCat("own kernels for prompts, since ",
                                     library.status().message())};
  }
  backend->UseLibrary(*std::move(library));
  return BenchBackend{std::move(backend), "cuBLASLt for prompts"};
}

}  // namespace strata
