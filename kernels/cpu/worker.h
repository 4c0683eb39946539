#ifndef KERNELS_CPU_WORKER_H_
#define KERNELS_CPU_WORKER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace strata::cpu {

// Where all workers of a team wait for each other, by spinning: under a
// microsecond when each has a core, and still correct (it yields) when they
// have not.
class SpinBarrier {
 public:
  // `may_spin`: each worker has a core; otherwise it yields at once.
  explicit SpinBarrier(int num_workers, bool may_spin = true)
      : num_workers_(num_workers), may_spin_(may_spin) {}

  // Returns once all workers have called it as often as this one.  What any of
  // them wrote before is visible to all after.
  void Wait();

 private:
  const int num_workers_;
  const bool may_spin_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> round_{0};
};

struct Share {
  int64_t begin;
  int64_t end;
};

// One of the threads that run the operations of a step together.  Each
// operation is a function void Op(const OpArgs&, ..., const Worker&) that all
// workers of the team call with the same arguments; it does its share, and may
// Sync between phases.  The team syncs between operations.
struct Worker {
  int id = 0;  // in [0, count)
  int count = 1;
  SpinBarrier* barrier = nullptr;  // null where count is 1

  void Sync() const {
    if (count > 1) barrier->Wait();
  }

  // This worker's part of n items: contiguous, whole multiples of `grain` but
  // for the end of n.
  Share ShareOf(int64_t n, int64_t grain = 1) const {
    const int64_t units = (n + grain - 1) / grain;
    return {std::min(n, units * id / count * grain),
            std::min(n, units * (id + 1) / count * grain)};
  }
};

}  // namespace strata::cpu

#endif  // KERNELS_CPU_WORKER_H_
