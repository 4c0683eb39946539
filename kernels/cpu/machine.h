#ifndef KERNELS_CPU_MACHINE_H_
#define KERNELS_CPU_MACHINE_H_

#include <cstdint>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/thread_team.h"

// What the machine can do, measured by loops that do nothing else: the
// yardstick of a kernel in the same run, and of the planner.
namespace strata::cpu {

// More than the caches of most machines.
inline constexpr int64_t kReadBytes = int64_t{192} << 20;

// Bytes a second that the team reads, GB/s: the best of some passes over
// `num_bytes`, which come from memory, or in part from caches if that is less
// than kReadBytes.  REQUIRES: AVX2; num_bytes > 0.
double ReadGigabytes(ThreadTeam& team, int64_t num_bytes = kReadBytes);

// Peak rates of the team in GFLOP/s or GOP/s (a multiply and an add are two); 0
// where `isa` has no such instruction.
double F32Gigaflops(ThreadTeam& team, Isa isa);
double Bf16Gigaflops(ThreadTeam& team, Isa isa);
double Int8Gigaops(ThreadTeam& team, Isa isa);

}  // namespace strata::cpu

#endif  // KERNELS_CPU_MACHINE_H_
