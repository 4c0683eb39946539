#include <cstdint>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/weights.cuh"

namespace strata::cuda {
namespace {

constexpr int kThreads = 256;

__device__ float SwiGlu(float gate, float up) {
  return gate / (1.0f + expf(-gate)) * up;
}

// One block a row, in chunks of 8 columns.
__global__ void __launch_bounds__(kThreads) SwiGluKernel(SwiGluArgs args) {
  GriddepWait();
  GriddepLaunch();
  const int64_t row = blockIdx.x;
  const float* gate = args.y + row * 2 * args.cols;
  const float* up = gate + args.cols;
  uint4* z = reinterpret_cast<uint4*>(args.z + row * args.cols);
  for (int c = threadIdx.x; c < args.cols / 8; c += kThreads) {
    float v[8];
    for (int i = 0; i < 8; ++i) v[i] = SwiGlu(gate[8 * c + i], up[8 * c + i]);
    z[c] = PackBf16(v);
  }
}

}  // namespace

cudaError_t SwiGlu(const SwiGluArgs& args, cudaStream_t stream) {
  if (args.cols % 8 != 0) return cudaErrorInvalidValue;
  if (args.rows == 0) return cudaSuccess;  // a grid of 0 blocks is an error
  return Launch<SwiGluKernel>({.grid = dim3(args.rows),
                               .block = dim3(kThreads),
                               .stream = stream,
                               .overlap = true},
                              args);
}

}  // namespace strata::cuda
