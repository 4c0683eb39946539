#include <cstdint>

#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/launch.cuh"
#include "tests/kernels/cuda/fp8_kernels.h"

namespace strata {
namespace {

constexpr int kThreads = 128;

__device__ Bf16 Half(uint32_t pair, int i) {
  return static_cast<Bf16>(pair >> 16 * i & 0xffff);
}

__global__ void WidenPairsKernel(const Fp8* in, Bf16* out, int count) {
  constexpr uint32_t kGarbage = 0x7f7f0000;  // what does not count
  for (int i = 2 * threadIdx.x; i < count; i += 2 * kThreads) {
    const uint32_t pair =
        cuda::WidenFp8(*reinterpret_cast<const uint16_t*>(in + i) | kGarbage);
    for (int j = 0; j < 2; ++j) out[i + j] = Half(pair, j);
  }
}

__global__ void WidenFoursKernel(const Fp8* in, Bf16* out, int count) {
  for (int i = 4 * threadIdx.x; i < count; i += 4 * kThreads) {
    const auto four = *reinterpret_cast<const uint32_t*>(in + i);
    const uint32_t even = cuda::WidenFp8Even(four);
    const uint32_t odd = cuda::WidenFp8Odd(four);
    for (int j = 0; j < 4; ++j) {
      out[i + j] = Half(j % 2 == 0 ? even : odd, j / 2);
    }
  }
}

__global__ void NarrowPairsKernel(const float* in, Fp8* out, int count) {
  for (int i = 2 * threadIdx.x; i < count; i += 2 * kThreads) {
    *reinterpret_cast<uint16_t*>(out + i) =
        static_cast<uint16_t>(cuda::NarrowToFp8(in[i], in[i + 1]));
  }
}

constexpr cuda::LaunchConfig kBlock = {dim3(1), dim3(kThreads)};

}  // namespace

cudaError_t WidenPairs(const Fp8* in, Bf16* out, int count) {
  return cuda::Launch<WidenPairsKernel>(kBlock, in, out, count);
}

cudaError_t WidenFours(const Fp8* in, Bf16* out, int count) {
  return cuda::Launch<WidenFoursKernel>(kBlock, in, out, count);
}

cudaError_t NarrowPairs(const float* in, Fp8* out, int count) {
  return cuda::Launch<NarrowPairsKernel>(kBlock, in, out, count);
}

}  // namespace strata
