#ifndef TESTS_TESTING_CUDA_ON_CPU_GRAPH_H_
#define TESTS_TESTING_CUDA_ON_CPU_GRAPH_H_

#include <cuda_runtime_api.h>

#include <functional>

namespace cuda_on_cpu {

// Appends to the graph that is captured.  REQUIRES: IsCapturing().
void KeepLaunch(std::function<cudaError_t()> launch);

}  // namespace cuda_on_cpu

#endif  // TESTS_TESTING_CUDA_ON_CPU_GRAPH_H_
