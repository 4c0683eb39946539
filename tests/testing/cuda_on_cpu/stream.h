#ifndef TESTS_TESTING_CUDA_ON_CPU_STREAM_H_
#define TESTS_TESTING_CUDA_ON_CPU_STREAM_H_

#include <cuda_runtime_api.h>

#include <functional>

// The stream, of which there is one.  What runs at once may be enqueued by
// several threads, the ranks of a ParallelBackend; late work by one.
namespace cuda_on_cpu {

// While `late`, what is enqueued runs as late as CUDA may run it: when the host
// waits for it, by cudaEventSynchronize, cudaStreamSynchronize or
// cudaDeviceSynchronize.  Not in a synchronous copy, set or free, which do not
// wait for a non-blocking stream.  Else, the default, at once.  Host memory
// that is changed too early, or device memory that is freed, gives wrong
// results so. REQUIRES: all that was enqueued has run.
void SetLate(bool late);

// Runs `work` in its turn.  Returns its error if it runs at once; else the next
// call that waits for it does.
cudaError_t Enqueue(std::function<cudaError_t()> work);

}  // namespace cuda_on_cpu

#endif  // TESTS_TESTING_CUDA_ON_CPU_STREAM_H_
