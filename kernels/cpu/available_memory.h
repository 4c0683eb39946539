#ifndef KERNELS_CPU_AVAILABLE_MEMORY_H_
#define KERNELS_CPU_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace strata::cpu {

// Bytes that this process can still take before the kernel kills somebody: what
// the machine has available, or less where a memory limit of its control
// groups, of either version, leaves less.  Pages of files do not count as
// taken: the kernel drops them first.  (proc(5), MemAvailable; Linux's
// admin-guide/cgroup-v2 and cgroup-v1/memory)
//
// `root` is in front of /proc and /sys.  NOT_FOUND: there is no such file.
absl::StatusOr<int64_t> AvailableMemory(const std::string& root = "");

}  // namespace strata::cpu

#endif  // KERNELS_CPU_AVAILABLE_MEMORY_H_
