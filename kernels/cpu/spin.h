#ifndef KERNELS_CPU_SPIN_H_
#define KERNELS_CPU_SPIN_H_

namespace strata::cpu {

// Spins of a waiting thread before it offers its core to others: some tens of
// microseconds, longer than operations of equal shares differ.
inline constexpr int kSpinsBeforeYield = 2000;

// Tells the core that this thread spins.
inline void SpinPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace strata::cpu

#endif  // KERNELS_CPU_SPIN_H_
