#include "kernels/cpu/worker.h"

#include <sched.h>

#include "kernels/cpu/spin.h"

namespace strata::cpu {

void SpinBarrier::Wait() {
  const uint32_t round = round_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_workers_) {
    // No one arrives for the next round before round_ changes.
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    return;
  }
  for (int spins = 0; round_.load(std::memory_order_acquire) == round;
       ++spins) {
    if (may_spin_ && spins < kSpinsBeforeYield) {
      SpinPause();
    } else {
      sched_yield();
    }
  }
}

}  // namespace strata::cpu
