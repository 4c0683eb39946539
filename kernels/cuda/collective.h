#ifndef KERNELS_CUDA_COLLECTIVE_H_
#define KERNELS_CUDA_COLLECTIVE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"

namespace strata::cuda {

// The GPUs of one process that compute one model together, as one of them, a
// rank, sees them.  Each rank has a thread, which alone calls this, but for
// Abort; all call it in the same order.
class Collective {
 public:
  virtual ~Collective() = default;

  // Enqueues x = the sum over all ranks of their x, the same bits on each. Goes
  // into the graph where `stream` is captured, which it then is on all ranks.
  virtual absl::Status AllReduce(float* x /*[count]*/, int64_t count,
                                 cudaStream_t stream) = 0;

  // On the host: Meeting::Meet (kernels/parallel/meeting.h) of all ranks.
  virtual uint32_t Meet(uint32_t flags) = 0;

  // This rank has failed: no other waits for it from now on, on the host or in
  // a kernel.  What they have then is undefined.
  virtual void Abort() = 0;
};

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_COLLECTIVE_H_
