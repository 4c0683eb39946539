#include "kernels/parallel/host_collective.h"

namespace strata {

bool HostCollective::AllReduce(int rank, float* x, int64_t count) {
  x_[rank] = x;
  if (meeting_.Meet() == Meeting::kEnded) return false;
  // Each rank sums a part, of which no other reads or writes anything.
  const int64_t end = count * (rank + 1) / num_ranks_;
  for (int64_t i = count * rank / num_ranks_; i < end; ++i) {
    float sum = x_[0][i];
    for (int r = 1; r < num_ranks_; ++r) sum += x_[r][i];
    for (float* of_rank : x_) of_rank[i] = sum;
  }
  return meeting_.Meet() != Meeting::kEnded;
}

}  // namespace strata
