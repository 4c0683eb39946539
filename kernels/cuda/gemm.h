#ifndef KERNELS_CUDA_GEMM_H_
#define KERNELS_CUDA_GEMM_H_

#include "kernels/cuda/ops.h"

namespace strata::cuda {

// Product for many rows.  A row's bits do not depend on the number of rows.
// REQUIRES: rows > 0, x given, and of kSwiGlu w[0] and w[1] of one format.
cudaError_t Gemm(const ProductArgs& args, cudaStream_t stream);

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_GEMM_H_
