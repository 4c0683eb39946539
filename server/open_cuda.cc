// Of servers that are built with --config=cuda.

#include "kernels/cuda/cuda_backend.h"
#include "server/open_backend.h"

namespace strata {

absl::StatusOr<std::unique_ptr<Backend>> OpenCudaBackend() {
  return cuda::CudaBackend::Create();
}

}  // namespace strata
