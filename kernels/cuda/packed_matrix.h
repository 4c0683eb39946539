#ifndef KERNELS_CUDA_PACKED_MATRIX_H_
#define KERNELS_CUDA_PACKED_MATRIX_H_

#include <cstdint>

#include "kernels/cuda/ops.h"
#include "kernels/ops.h"

namespace strata::cuda {

// The Matrix that CudaBackend packs; the backend owns its memory.
class PackedMatrix final : public Matrix {
 public:
  explicit PackedMatrix(const DeviceMatrix& matrix) : matrix_(matrix) {}

  int64_t rows() const override { return matrix_.rows; }
  int64_t cols() const override { return matrix_.cols; }
  int64_t num_bytes() const override {
    return rows() * (RowBytes(matrix_.format, cols()) +
                     RowScaleBytes(matrix_.format, cols()));
  }
  const DeviceMatrix& device() const { return matrix_; }

  // That of `matrix`, which CudaBackend packed; empty for null.
  static DeviceMatrix Of(const Matrix* matrix) {
    return matrix != nullptr
               ? static_cast<const PackedMatrix*>(matrix)->device()
               : DeviceMatrix();
  }

 private:
  const DeviceMatrix matrix_;
};

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_PACKED_MATRIX_H_
