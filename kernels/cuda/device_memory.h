#ifndef KERNELS_CUDA_DEVICE_MEMORY_H_
#define KERNELS_CUDA_DEVICE_MEMORY_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace strata::cuda {

// Memory of the device, or pinned memory of the host, that grows and then
// stays. Owns it.  A failed allocation is latched in error().
template <bool kPinned>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t num_bytes) { Grow(num_bytes); }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        num_bytes_(std::exchange(other.num_bytes_, 0)),
        error_(other.error_) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() { Free(); }

  // At least `num_bytes` from now on; what was in it is lost if it grows.
  // Returns whether it has moved.
  bool Grow(int64_t num_bytes) {
    if (num_bytes <= num_bytes_ || error_ != cudaSuccess) return false;
    Free();
    void* data = nullptr;
    if constexpr (kPinned) {
      error_ = cudaMallocHost(&data, static_cast<size_t>(num_bytes));
    } else {
      error_ = cudaMalloc(&data, static_cast<size_t>(num_bytes));
    }
    if (error_ != cudaSuccess) return false;
    data_ = static_cast<std::byte*>(data);
    num_bytes_ = num_bytes;
    return true;
  }

  std::byte* data() const { return data_; }
  int64_t num_bytes() const { return num_bytes_; }
  cudaError_t error() const { return error_; }

 private:
  void Free() {
    if constexpr (kPinned) {
      cudaFreeHost(data_);
    } else {
      cudaFree(data_);
    }
    data_ = nullptr;
    num_bytes_ = 0;
  }

  std::byte* data_ = nullptr;
  int64_t num_bytes_ = 0;
  cudaError_t error_ = cudaSuccess;
};

using DeviceBuffer = Buffer<false>;
using PinnedBuffer = Buffer<true>;

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_DEVICE_MEMORY_H_
