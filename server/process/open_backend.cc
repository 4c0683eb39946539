#include "server/process/open_backend.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_backend.h"

namespace strata {
namespace {

std::unique_ptr<Backend> OpenCpuBackend(const ServerOptions& options) {
  return std::make_unique<cpu::CpuBackend>(
      cpu::CpuOptions{.num_threads = options.NumThreads(),
                      .exact_f32 = options.precision == "f32"});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(
    const ServerOptions& options, Logger* logger) {
  if (options.backend == "cpu") return OpenCpuBackend(options);
  absl::StatusOr<std::unique_ptr<Backend>> cuda = OpenCudaBackend(logger);
  if (options.backend == "cuda") {
    if (cuda.ok()) return cuda;
    return absl::Status(
        cuda.status().code(),
        absl::StrCat("--backend=cuda: ", cuda.status().message()));
  }
  // f32 is what only the CPU computes in.
  if (cuda.ok() && options.precision != "f32") return cuda;
  if (absl::IsUnavailable(cuda.status())) {
    logger->Info(
        "backend",
        {{"uses", "cpu"}, {"because", std::string(cuda.status().message())}});
  }
  return OpenCpuBackend(options);
}

}  // namespace strata
