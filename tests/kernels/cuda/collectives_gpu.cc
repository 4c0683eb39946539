#include "kernels/cuda/nccl_collective.h"
#include "tests/kernels/cuda/collectives.h"

namespace strata::cuda {

absl::StatusOr<std::vector<std::unique_ptr<Collective>>> MakeCollectives(
    int num_ranks) {
  return OpenNccl(num_ranks);
}

}  // namespace strata::cuda
