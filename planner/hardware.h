#ifndef PLANNER_HARDWARE_H_
#define PLANNER_HARDWARE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"

namespace strata {

// What runs a model: the two rates of a roofline.
struct Hardware {
  std::string name;                  // "h100", "cpu", ...
  std::string description;           // in words, with where the rates come from
  bool is_gpu = false;               // the CUDA backend, else the CPU's
  int64_t memory_bytes = 0;          // 0: not known
  double read_bytes_per_second = 0;  // 0: not known
  double flops_per_second = 0;       // a multiply and an add are two
};

// A GPU by name; "gpu": another one, of which nothing is known; "cpu", of which
// MeasureCpu knows the rates.  INVALID_ARGUMENT, with the names allowed, for
// others.
absl::StatusOr<Hardware> FindHardware(std::string_view name);

// `num_devices` of them, as if they were one: no time for sums over all.
Hardware Several(Hardware hardware, int num_devices);

// Fills in the rates of this machine's CPU that are 0 by loops of some tenths
// of a second on `num_threads` threads: reading `step_bytes` over and over, as
// a decode step reads its weights (what a cache holds of them counts), and the
// instruction that products with weights of `type` are made of, in f32 if
// `exact_f32`.  FAILED_PRECONDITION on a CPU without AVX2.
// REQUIRES: num_threads > 0; step_bytes > 0.
absl::Status MeasureCpu(int num_threads, DType type, bool exact_f32,
                        int64_t step_bytes, Hardware* cpu);

}  // namespace strata

#endif  // PLANNER_HARDWARE_H_
