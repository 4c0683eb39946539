#include "kernels/cpu/aligned_buffer.h"

#include <sys/mman.h>

#include "base/check.h"

namespace strata::cpu {

namespace {

constexpr int64_t kHugePageBytes = int64_t{2} << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(int64_t num_bytes) : size_(num_bytes) {
  if (num_bytes == 0) return;
  void* memory = mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  STRATA_CHECK(memory != MAP_FAILED);
  data_ = static_cast<std::byte*>(memory);
#if defined(MADV_HUGEPAGE)
  // Only advice: the kernel may have none to give.
  if (num_bytes >= kHugePageBytes) madvise(memory, num_bytes, MADV_HUGEPAGE);
#endif
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace strata::cpu
