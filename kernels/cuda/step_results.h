#ifndef KERNELS_CUDA_STEP_RESULTS_H_
#define KERNELS_CUDA_STEP_RESULTS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/ops.h"
#include "kernels/sampling.h"

namespace strata::cuda {

// What steps sample.  On the device it stays until the next step samples, which
// may read it before; a copy goes to the host, one for each step in flight.
//
// For each step: Begin, Append for each Sample, Allocate, the launches, Fetch;
// and Wait once, in the order of the steps.
class StepResults {
 public:
  static constexpr int kMaxInFlight = 2;

  StepResults() = default;
  StepResults(const StepResults&) = delete;
  StepResults& operator=(const StepResults&) = delete;
  ~StepResults();

  // REQUIRES: fewer than kMaxInFlight steps between Fetch and Wait.
  void Begin();
  // Makes room for the `rows` rows of a launch; the first `count` are for
  // `out`, the others are padding.  Returns the index of the first in device().
  // REQUIRES: no padding was appended before, so that the i-th sampled token of
  // a step has index i.
  int64_t Append(int rows, int count, SampledToken* out);
  // Sets *has_moved if device() has changed.
  cudaError_t Allocate(cudaStream_t stream, bool* has_moved);
  // Host memory for both steps in flight, as large as this one's.
  // REQUIRES: none is in flight.
  cudaError_t Reserve();
  int64_t num_bytes() const { return device_.num_bytes(); }
  // [rows appended]
  DeviceSampledToken* device() const {
    return reinterpret_cast<DeviceSampledToken*>(device_.data());
  }
  // Starts to copy them to the host, when what was launched has ended.
  cudaError_t Fetch(cudaStream_t stream);

  // Waits for the oldest step that was fetched, if there is one, and hands out
  // its tokens.
  cudaError_t Wait();

 private:
  struct Rows {
    int64_t first;
    int count;
    SampledToken* out;
  };
  struct Step {
    std::vector<Rows> sampled = {};
    int64_t num_rows = 0;
    PinnedBuffer host = {};
    cudaEvent_t done = nullptr;
  };

  Step& newest() { return steps_[num_fetched_ % kMaxInFlight]; }

  DeviceBuffer device_;
  Step steps_[kMaxInFlight];
  int64_t num_fetched_ = 0;
  int64_t num_waited_ = 0;
};

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_STEP_RESULTS_H_
