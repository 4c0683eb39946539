#ifndef KERNELS_CPU_ALIGNED_BUFFER_H_
#define KERNELS_CPU_ALIGNED_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <utility>

namespace strata::cpu {

// Owns zeroed memory that starts at a cache line (64 bytes); 2 MB and more
// start at a huge page and ask the system for such, as a kernel that streams
// them would otherwise wait for address translations.  Running out of memory
// ends the process.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t num_bytes);
  AlignedBuffer(AlignedBuffer&& other) noexcept { swap(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~AlignedBuffer();

  std::byte* data() const { return data_; }
  float* floats() const { return reinterpret_cast<float*>(data_); }
  int64_t size() const { return size_; }  // bytes

  // Makes it at least `num_bytes` long.  What it held is lost if it grows.
  void Reserve(int64_t num_bytes) {
    if (num_bytes > size_) *this = AlignedBuffer(num_bytes);
  }

 private:
  void swap(AlignedBuffer& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
  }

  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  void* mapped_ = nullptr;  // what contains data_
  int64_t mapped_bytes_ = 0;
};

}  // namespace strata::cpu

#endif  // KERNELS_CPU_ALIGNED_BUFFER_H_
