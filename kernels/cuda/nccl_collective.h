#ifndef KERNELS_CUDA_NCCL_COLLECTIVE_H_
#define KERNELS_CUDA_NCCL_COLLECTIVE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/collective.h"

namespace strata::cuda {

// NCCL over devices 0 to num_ranks - 1 of this machine: a Collective for each,
// to be destroyed by its rank's thread while the others destroy theirs.  The
// library is loaded now, not linked: the server starts without it.
// UNAVAILABLE, and why: there is no device.  INVALID_ARGUMENT: fewer devices
// than ranks.  FAILED_PRECONDITION: NCCL is not there, or does not take them.
//
// UNRUN: compiled, its prototypes compared with nccl.h of 2.28, but no GPU has
// run it yet; nccl_collective_test_gpu is to be the first.
absl::StatusOr<std::vector<std::unique_ptr<Collective>>> OpenNccl(
    int num_ranks);

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_NCCL_COLLECTIVE_H_
