#ifndef KERNELS_PARALLEL_HOST_COLLECTIVE_H_
#define KERNELS_PARALLEL_HOST_COLLECTIVE_H_

#include <cstdint>
#include <vector>

#include "kernels/parallel/meeting.h"

namespace strata {

// Sums over the ranks of one process, in host memory.
//
// Each rank calls it from one thread at a time, all in the same order.
class HostCollective {
 public:
  // REQUIRES: num_ranks > 0.
  explicit HostCollective(int num_ranks)
      : num_ranks_(num_ranks), meeting_(num_ranks), x_(num_ranks) {}

  // x = x of rank 0 + x of rank 1 + ..., added in this order.  Returns once all
  // ranks have it; false if the meeting has ended, with x undefined.
  bool AllReduce(int rank, float* x /*[count]*/, int64_t count);

  Meeting& meeting() { return meeting_; }

 private:
  const int num_ranks_;
  Meeting meeting_;
  std::vector<float*> x_;  // by rank
};

}  // namespace strata

#endif  // KERNELS_PARALLEL_HOST_COLLECTIVE_H_
