#ifndef KERNELS_CUDA_PRODUCT_KERNELS_H_
#define KERNELS_CUDA_PRODUCT_KERNELS_H_

#include "kernels/cuda/ops.h"

// The kernels behind Product, by how many rows they are for.  None needs
// scratch.  REQUIRES: rows > 0, and of kSwiGlu w[0] and w[1] of one format.
namespace strata::cuda {

// More columns do not fit into shared memory with kMaxGemvRows rows.
inline constexpr int kMaxGemvCols = 16384;

// REQUIRES: rows <= kMaxGemvRows, cols <= kMaxGemvCols.
cudaError_t Gemv(const ProductArgs& args, cudaStream_t stream);

// REQUIRES: rows <= kMaxSmallRows, and x given.
cudaError_t SmallProduct(const ProductArgs& args, cudaStream_t stream);

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_PRODUCT_KERNELS_H_
