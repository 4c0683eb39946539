// Of servers that are built without --config=cuda.

#include "absl/status/status.h"
#include "server/process/open_backend.h"

namespace strata {

absl::StatusOr<std::unique_ptr<Backend>> OpenCudaBackend(const ServerOptions&,
                                                         Logger*) {
  return absl::UnimplementedError(
      "this server was built without CUDA (bazel build --config=cuda "
      "//server:strata_server)");
}

}  // namespace strata
