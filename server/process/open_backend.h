#ifndef SERVER_PROCESS_OPEN_BACKEND_H_
#define SERVER_PROCESS_OPEN_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "server/process/logging.h"
#include "server/process/options.h"

namespace strata {

// The backend that --backend names, of --tensor_parallel devices.  "auto" is
// CUDA where this server was built with it (--config=cuda) and a device
// answers, with a line in the log if none does; else the CPU.  "cuda" is an
// error without either, and so is what only CUDA has (--weight_type=fp8,
// --kv_type=fp8).
absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(
    const ServerOptions& options, Logger* logger);

// UNIMPLEMENTED: built without CUDA.  UNAVAILABLE: no driver or device. Another
// error: there are devices, but not as many, or no NCCL.  A line in the log
// says why where cuBLASLt is not used.
absl::StatusOr<std::unique_ptr<Backend>> OpenCudaBackend(
    const ServerOptions& options, Logger* logger);

}  // namespace strata

#endif  // SERVER_PROCESS_OPEN_BACKEND_H_
