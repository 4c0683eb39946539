#ifndef KERNELS_CUDA_STEP_UPLOAD_H_
#define KERNELS_CUDA_STEP_UPLOAD_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/cuda/device_memory.h"

namespace strata::cuda {

// What the kernels of one step read besides activations, collected on the host
// and copied to the device at once.  Two parts, each contiguous there: the
// fixed one, whose layout is the same for all steps of one shape, so that a
// captured step finds its values at the same addresses; and the lists, whose
// lengths change, and which are found by element offsets that the fixed part
// holds.
class StepUpload {
 public:
  void Clear() {
    fixed_.clear();
    lists_.clear();
  }

  // Appends `values` and then `fill`, `count` elements in all; returns where in
  // the fixed part they begin, for At.
  template <typename T>
  int64_t Append(std::span<const T> values, int64_t count, T fill = T()) {
    const int64_t at = Align(&fixed_);
    fixed_.resize(at + count * sizeof(T));
    T* out = reinterpret_cast<T*>(fixed_.data() + at);
    std::copy(values.begin(), values.end(), out);
    std::fill(out + values.size(), out + count, fill);
    return at;
  }

  // Appends to the lists; returns the element that it begins with, counted in T
  // from the lists' begin.
  template <typename T>
  int64_t AppendList(std::span<const T> values) {
    const int64_t at = Align(&lists_);
    lists_.resize(at + values.size_bytes());
    const auto bytes = std::as_bytes(values);
    std::copy(bytes.begin(), bytes.end(), lists_.begin() + at);
    return at / static_cast<int64_t>(sizeof(T));
  }

  // The same of `rows` runs of `cols` elements, `stride` apart.
  template <typename T>
  int64_t AppendList(const T* first, int rows, int cols, int64_t stride) {
    const int64_t at = Align(&lists_);
    for (int row = 0; row < rows; ++row) {
      const auto bytes = std::as_bytes(std::span(first + row * stride, cols));
      lists_.insert(lists_.end(), bytes.begin(), bytes.end());
    }
    return at / static_cast<int64_t>(sizeof(T));
  }

  // Memory for what has been appended, and for lists of `list_bytes` in all.
  // REQUIRES: all copies are done.
  cudaError_t Reserve(int64_t list_bytes = 0) {
    has_moved_ = false;
    for (int i = 0; i < 2; ++i) {
      turn_ = 1 - turn_;
      const cudaError_t error = Grow(list_bytes);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }

  // Starts to copy both parts, behind the kernels that read what was copied
  // before.  The addresses below hold until the next one that sets has_moved().
  // REQUIRES: the copies of the call before the last one are done.
  cudaError_t Copy(cudaStream_t stream) {
    has_moved_ = false;
    turn_ = 1 - turn_;
    if (std::ssize(fixed_) > fixed_part_.device.num_bytes() ||
        std::ssize(lists_) > lists_part_.device.num_bytes()) {
      const cudaError_t error = cudaStreamSynchronize(stream);
      if (error != cudaSuccess) return error;
    }
    if (const cudaError_t error = Grow(0); error != cudaSuccess) return error;
    for (Part* part : {&fixed_part_, &lists_part_}) {
      const std::vector<std::byte>& from =
          part == &fixed_part_ ? fixed_ : lists_;
      if (from.empty()) continue;
      PinnedBuffer& host = part->host[turn_];
      std::memcpy(host.data(), from.data(), from.size());
      const cudaError_t error =
          cudaMemcpyAsync(part->device.data(), host.data(), from.size(),
                          cudaMemcpyHostToDevice, stream);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }
  bool has_moved() const { return has_moved_; }

  int64_t num_bytes() const {  // on the device
    return fixed_part_.device.num_bytes() + lists_part_.device.num_bytes();
  }

  template <typename T>
  const T* At(int64_t offset) const {
    return reinterpret_cast<const T*>(fixed_part_.device.data() + offset);
  }
  template <typename T>
  const T* Lists() const {
    return reinterpret_cast<const T*>(lists_part_.device.data());
  }

 private:
  struct Part {
    DeviceBuffer device;
    PinnedBuffer host[2];  // in turns: the device may still read the other
  };

  // Both parts, on the device and the host memory whose turn it is.
  cudaError_t Grow(int64_t list_bytes) {
    const cudaError_t error = Grow(&fixed_part_, std::ssize(fixed_));
    if (error != cudaSuccess) return error;
    return Grow(&lists_part_,
                std::max(list_bytes, int64_t{std::ssize(lists_)}));
  }
  cudaError_t Grow(Part* part, int64_t num_bytes) {
    if (num_bytes > part->device.num_bytes()) {
      has_moved_ |= part->device.Grow(2 * num_bytes + 4096);
    }
    PinnedBuffer& host = part->host[turn_];
    if (num_bytes > host.num_bytes()) host.Grow(2 * num_bytes + 4096);
    return part->device.error() != cudaSuccess ? part->device.error()
                                               : host.error();
  }

  static int64_t Align(std::vector<std::byte>* part) {
    part->resize((part->size() + 15) / 16 * 16);
    return static_cast<int64_t>(part->size());
  }

  std::vector<std::byte> fixed_;
  std::vector<std::byte> lists_;
  Part fixed_part_;
  Part lists_part_;
  int turn_ = 0;
  bool has_moved_ = false;
};

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_STEP_UPLOAD_H_
