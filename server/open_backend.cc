#include "server/open_backend.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/cpu_features.h"

namespace strata {
namespace {

std::unique_ptr<Backend> OpenCpuBackend(const ServerOptions& options,
                                        Logger* logger) {
  const int num_threads = options.NumThreads();
  logger->Info("cpu", {{"isa", cpu::IsaName(cpu::DetectIsa())},
                       {"threads", num_threads}});
  return std::make_unique<cpu::CpuBackend>(cpu::CpuOptions{
      .num_threads = num_threads, .exact_f32 = options.precision == "f32"});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(
    const ServerOptions& options, Logger* logger) {
  if (options.backend == "cpu") return OpenCpuBackend(options, logger);
  absl::StatusOr<std::unique_ptr<Backend>> cuda = OpenCudaBackend();
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
  return OpenCpuBackend(options, logger);
}

}  // namespace strata
