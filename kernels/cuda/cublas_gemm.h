#ifndef KERNELS_CUDA_CUBLAS_GEMM_H_
#define KERNELS_CUDA_CUBLAS_GEMM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/gemm_library.h"

namespace strata::cuda {

// cuBLASLt as a GemmLibrary; owns a handle and its workspace on the current
// device.  The library is loaded now, not linked: the server starts without it.
// UNAVAILABLE, and why: it is not there, or does not take the device.
//
// UNRUN AND UNMEASURED: compiled against CUDA 13, but no GPU has run it yet;
// cublas_gemm_test_gpu is to be the first.
absl::StatusOr<std::unique_ptr<GemmLibrary>> LoadCublasGemm();

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_CUBLAS_GEMM_H_
