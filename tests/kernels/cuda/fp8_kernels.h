#ifndef TESTS_KERNELS_CUDA_FP8_KERNELS_H_
#define TESTS_KERNELS_CUDA_FP8_KERNELS_H_

#include <cuda_runtime_api.h>

#include "kernels/bf16.h"
#include "kernels/fp8.h"

// Around the functions of kernels/cuda/fp8.cuh, in device memory.
namespace strata {

// out [count] = in [count], each pair by WidenFp8.
cudaError_t WidenPairs(const Fp8* in, Bf16* out, int count);

// The same, each four by WidenFp8Even and WidenFp8Odd.
cudaError_t WidenFours(const Fp8* in, Bf16* out, int count);

// out [count] = in [count], each pair by NarrowToFp8.
cudaError_t NarrowPairs(const float* in, Fp8* out, int count);

}  // namespace strata

#endif  // TESTS_KERNELS_CUDA_FP8_KERNELS_H_
