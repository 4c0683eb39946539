#ifndef KERNELS_CUDA_GEMM_LIBRARY_H_
#define KERNELS_CUDA_GEMM_LIBRARY_H_

#include "kernels/cuda/ops.h"

namespace strata::cuda {

// A library that multiplies many rows in place of Gemm (gemm.h).  What it is
// given is launched at once and never captured, so that the host may say which
// matrices are wanted where a graph would read `any`.
class GemmLibrary {
 public:
  virtual ~GemmLibrary() = default;

  // Enqueues the product of the first `num_matrices` of args.w; `any` does not
  // count, y of the other matrices is not written.  False: it does not take
  // such a product, and the caller must do all of it.
  // REQUIRES: x given, weights of bf16, and kStore, or kAdd of one matrix.
  virtual bool Product(const ProductArgs& args, int num_matrices,
                       cudaStream_t stream) = 0;
};

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_GEMM_LIBRARY_H_
