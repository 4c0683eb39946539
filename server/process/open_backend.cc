#include "server/process/open_backend.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_ranks.h"

namespace strata {
namespace {

std::unique_ptr<Backend> OpenCpuBackend(const ServerOptions& options) {
  return cpu::MakeCpuRanks({.num_threads = options.NumThreads(),
                            .exact_f32 = options.precision == "f32"},
                           options.tensor_parallel);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(
    const ServerOptions& options, Logger* logger) {
  // f32 is what only the CPU computes in.
  if (options.backend == "cpu" || options.precision == "f32") {
    return OpenCpuBackend(options);
  }
  absl::StatusOr<std::unique_ptr<Backend>> cuda =
      OpenCudaBackend(options, logger);
  if (options.backend == "cuda") {
    if (cuda.ok()) return cuda;
    return absl::Status(
        cuda.status().code(),
        absl::StrCat("--backend=cuda: ", cuda.status().message()));
  }
  const bool is_missing = absl::IsUnavailable(cuda.status()) ||
                          absl::IsUnimplemented(cuda.status());
  if (!is_missing) return cuda;
  for (const auto& [flag, value] :
       {std::pair{"--weight_type", options.weight_type},
        std::pair{"--kv_type", options.kv_type}}) {
    if (value != "fp8") continue;
    return absl::Status(
        cuda.status().code(),
        absl::StrCat(flag, "=fp8 needs a GPU: ", cuda.status().message()));
  }
  if (absl::IsUnavailable(cuda.status())) {
    logger->Info(
        "backend",
        {{"uses", "cpu"}, {"because", std::string(cuda.status().message())}});
  }
  return OpenCpuBackend(options);
}

}  // namespace strata
