// Of servers that are built with --config=cuda.

#include <string>

#include "kernels/cuda/cublas_gemm.h"
#include "kernels/cuda/cuda_backend.h"
#include "server/process/open_backend.h"

namespace strata {

absl::StatusOr<std::unique_ptr<Backend>> OpenCudaBackend(Logger* logger) {
  absl::StatusOr<std::unique_ptr<cuda::CudaBackend>> backend =
      cuda::CudaBackend::Create();
  if (!backend.ok()) return backend.status();
  absl::StatusOr<std::unique_ptr<cuda::GemmLibrary>> library =
      cuda::LoadCublasGemm();
  if (library.ok()) {
    (*backend)->UseLibrary(*std::move(library));
  } else {
    logger->Info("gemm",
                 {{"uses", "own kernels"},
                  {"because", std::string(library.status().message())}});
  }
  return backend;
}

}  // namespace strata
