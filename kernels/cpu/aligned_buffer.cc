#include "kernels/cpu/aligned_buffer.h"

#include <sys/mman.h>

#include "base/check.h"

namespace strata::cpu {

namespace {

constexpr int64_t kHugePageBytes = int64_t{2} << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(int64_t num_bytes) : size_(num_bytes) {
  if (num_bytes == 0) return;
  const bool is_large = num_bytes >= kHugePageBytes;
  // Room to move the start to a huge page; what is never touched takes no
  // memory.
  mapped_bytes_ = num_bytes + (is_large ? kHugePageBytes : 0);
  mapped_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  STRATA_CHECK(mapped_ != MAP_FAILED);
  data_ = static_cast<std::byte*>(mapped_);
  if (is_large) {
    const auto address = reinterpret_cast<uintptr_t>(mapped_);
    data_ += (kHugePageBytes - address % kHugePageBytes) % kHugePageBytes;
#if defined(MADV_HUGEPAGE)
    // Only advice: the system may have none to give.
    madvise(data_, num_bytes, MADV_HUGEPAGE);
#endif
  }
}

AlignedBuffer::~AlignedBuffer() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
}

}  // namespace strata::cpu
