#include "tests/testing/cuda_on_cpu/stream.h"

#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>

#include "base/check.h"

// Recorded behind so much work.
struct CUevent_st {
  int64_t num_enqueued = 0;
};

namespace cuda_on_cpu {
namespace {

class Stream {
 public:
  static Stream& Get() {
    static Stream* const stream = new Stream();
    return *stream;
  }

  void set_late(bool late) {
    std::lock_guard lock(mu_);
    STRATA_CHECK(waiting_.empty());
    late_ = late;
  }

  cudaError_t Enqueue(std::function<cudaError_t()> work) {
    {
      std::lock_guard lock(mu_);
      ++num_enqueued_;
      if (late_) {
        waiting_.push_back(std::move(work));
        return cudaSuccess;
      }
      ++num_run_;
    }
    return work();  // which may wait for that of another thread
  }

  // Runs the first `count` that were ever enqueued, as far as they wait.
  cudaError_t RunUpTo(int64_t count) {
    std::lock_guard lock(mu_);
    while (!waiting_.empty() && num_run_ < count) {
      const std::function<cudaError_t()> work = std::move(waiting_.front());
      waiting_.pop_front();
      ++num_run_;
      const cudaError_t error = work();
      if (error_ == cudaSuccess) error_ = error;
    }
    return std::exchange(error_, cudaSuccess);
  }

  int64_t num_enqueued() {
    std::lock_guard lock(mu_);
    return num_enqueued_;
  }

 private:
  std::mutex mu_;  // held by late work that runs
  bool late_ = false;
  std::deque<std::function<cudaError_t()>> waiting_;
  int64_t num_enqueued_ = 0;
  int64_t num_run_ = 0;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace

void SetLate(bool late) { Stream::Get().set_late(late); }

cudaError_t Enqueue(std::function<cudaError_t()> work) {
  return Stream::Get().Enqueue(std::move(work));
}

}  // namespace cuda_on_cpu

using cuda_on_cpu::Stream;

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size,
                            cudaMemcpyKind, cudaStream_t) {
  if (cuda_on_cpu::IsCapturing()) return cudaErrorStreamCaptureUnsupported;
  return cuda_on_cpu::Enqueue([=] {
    if (size > 0) std::memcpy(to, from, size);
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* memory, int byte, size_t size, cudaStream_t) {
  if (cuda_on_cpu::IsCapturing()) return cudaErrorStreamCaptureUnsupported;
  return cuda_on_cpu::Enqueue([=] {
    if (size > 0) std::memset(memory, byte, size);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st();
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  event->num_enqueued = Stream::Get().num_enqueued();
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return Stream::Get().RunUpTo(event->num_enqueued);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return Stream::Get().RunUpTo(std::numeric_limits<int64_t>::max());
}

cudaError_t cudaDeviceSynchronize() { return cudaStreamSynchronize(nullptr); }
