#ifndef TESTS_KERNELS_CUDA_PTX_KERNELS_H_
#define TESTS_KERNELS_CUDA_PTX_KERNELS_H_

#include <cuda_runtime_api.h>

#include "kernels/bf16.h"

// One warp each, around the functions of kernels/cuda/ptx.cuh.  Matrices are
// row-major in device memory.
namespace strata {

// c [16, 8] += a [16, 16] b [16, 8], the fragments filled element by element as
// ptx.cuh documents them.
cudaError_t MultiplyByElement(const Bf16* a, const Bf16* b, float* c);

// The same through CpAsync16, Ldmatrix, LdmatrixTrans and LoadEvictFirst.
cudaError_t MultiplyByMatrix(const Bf16* a, const Bf16* b, float* c);

// out [8, 8] = in [8, 8] transposed.
cudaError_t TransposeMatrix(const Bf16* in, Bf16* out);

// out [2, 4] = in [4] by a valid copy, then by one that is not valid.
cudaError_t CopyAndZero(const float* in, float* out);

// out [2] = in[1] by a valid copy of 4 bytes, then by one that is not valid.
cudaError_t CopyAndZeroWord(const float* in, float* out);

// v [32] = 2^v
cudaError_t Exp2InPlace(float* v);

}  // namespace strata

#endif  // TESTS_KERNELS_CUDA_PTX_KERNELS_H_
