#ifndef TESTS_BENCH_MACHINE_H_
#define TESTS_BENCH_MACHINE_H_

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/thread_team.h"

// What the machine can do, measured by loops that do nothing else: the
// yardstick of a kernel in the same run.
namespace strata::cpu {

// Bytes a second that the team reads from memory, GB/s: the best of some passes
// over 192 MB.
double ReadGigabytes(ThreadTeam& team);

// Peak rates of the team in GFLOP/s or GOP/s (a multiply and an add are two); 0
// where `isa` has no such instruction.
double F32Gigaflops(ThreadTeam& team, Isa isa);
double Bf16Gigaflops(ThreadTeam& team, Isa isa);
double Int8Gigaops(ThreadTeam& team, Isa isa);

}  // namespace strata::cpu

#endif  // TESTS_BENCH_MACHINE_H_
