// Of servers that are built with --config=cuda.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "kernels/cuda/cublas_gemm.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/nccl_collective.h"
#include "kernels/parallel/parallel_backend.h"
#include "server/process/open_backend.h"

namespace strata {
namespace {

// On the calling thread.
absl::StatusOr<std::unique_ptr<cuda::CudaBackend>> OpenDevice(
    int device, const ServerOptions& options, Logger* logger) {
  absl::StatusOr<std::unique_ptr<cuda::CudaBackend>> backend =
      cuda::CudaBackend::Create(device,
                                {.fp8_weights = options.weight_type == "fp8",
                                 .fp8_kv = options.kv_type == "fp8"});
  if (!backend.ok()) return backend.status();
  absl::StatusOr<std::unique_ptr<cuda::GemmLibrary>> library =
      cuda::LoadCublasGemm();
  if (library.ok()) {
    (*backend)->UseLibrary(*std::move(library));
  } else if (device == 0) {
    logger->Info("gemm",
                 {{"uses", "own kernels"},
                  {"because", std::string(library.status().message())}});
  }
  return backend;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenCudaBackend(
    const ServerOptions& options, Logger* logger) {
  const int num_devices = options.tensor_parallel;
  if (num_devices == 1) return OpenDevice(0, options, logger);
  auto collectives = cuda::OpenNccl(num_devices);
  if (!collectives.ok()) {
    return absl::Status(collectives.status().code(),
                        absl::StrCat("--tensor_parallel=", num_devices, ": ",
                                     collectives.status().message()));
  }
  return ParallelBackend::Create(
      num_devices, ParallelBackend::Memory::kOfEach,
      [&](int rank) -> absl::StatusOr<std::unique_ptr<Backend>> {
        STRATA_ASSIGN_OR_RETURN(auto backend,
                                OpenDevice(rank, options, logger));
        backend->UseCollective(std::move((*collectives)[rank]));
        return backend;
      });
}

}  // namespace strata
