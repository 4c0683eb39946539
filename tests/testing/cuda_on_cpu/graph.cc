#include "tests/testing/cuda_on_cpu/graph.h"

#include <memory>
#include <utility>
#include <vector>

#include "tests/testing/cuda_on_cpu/stream.h"

// A graph is the launches, and its executable a copy of them.
struct CUgraph_st {
  std::vector<std::function<cudaError_t()>> launches;
};
struct CUgraphExec_st {
  std::vector<std::function<cudaError_t()>> launches;
};

namespace {
thread_local std::unique_ptr<CUgraph_st> captured;
}  // namespace

namespace cuda_on_cpu {

bool IsCapturing() { return captured != nullptr; }

void KeepLaunch(std::function<cudaError_t()> launch) {
  captured->launches.push_back(std::move(launch));
}

}  // namespace cuda_on_cpu

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  if (captured != nullptr) return cudaErrorStreamCaptureUnsupported;
  captured = std::make_unique<CUgraph_st>();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  if (captured == nullptr) return cudaErrorInvalidValue;
  *graph = captured.release();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = new CUgraphExec_st{graph->launches};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
  // One that is destroyed before it has run runs even so.
  return cuda_on_cpu::Enqueue([launches = executable->launches] {
    for (const auto& launch : launches) {
      if (const cudaError_t error = launch(); error != cudaSuccess) {
        return error;
      }
    }
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
