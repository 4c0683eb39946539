#ifndef TESTS_KERNELS_CUDA_COLLECTIVES_H_
#define TESTS_KERNELS_CUDA_COLLECTIVES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/collective.h"

namespace strata::cuda {

// One for each rank: NCCL's, or an error where there are fewer GPUs; on the CPU
// those of a HostCollective.
absl::StatusOr<std::vector<std::unique_ptr<Collective>>> MakeCollectives(
    int num_ranks);

}  // namespace strata::cuda

#endif  // TESTS_KERNELS_CUDA_COLLECTIVES_H_
