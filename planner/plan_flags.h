#ifndef PLANNER_PLAN_FLAGS_H_
#define PLANNER_PLAN_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "planner/kv_type.h"

namespace strata {

// What ./strata plan is told, checked as far as that goes without the model.
struct PlanFlags {
  std::string model;  // a path, or
  std::string shape;  // a name
  std::optional<DType> weight_type;
  bool fp8_weights = false;  // of floats, on the device
  std::string device;
  std::optional<int64_t> memory_bytes;
  std::optional<int64_t> workspace_bytes;
  double read_gb_per_second = 0;  // 0: the device's
  double teraflops = 0;           // 0: the device's
  int threads = 0;                // > 0
  int tensor_parallel = 1;        // devices; > 0
  PlannedKvType kv_type = PlannedKvType::kBF16;
  int page_tokens = 0;
  int max_batched_tokens = 0;
  int64_t context = 0;  // 0: what the model was made for, to a limit
  int64_t output_tokens = 0;
  std::vector<std::string> strategies;
  std::vector<int> batches;
  std::string json;  // a path, or empty
};

// For main.cc alone: the flags are global.

// The text of --help: every flag with its default.
std::string PlanHelp();

// Reads `--name=value` and `--name value`.  INVALID_ARGUMENT, in one line, for
// what is unknown, of the wrong type or out of range.
absl::StatusOr<PlanFlags> PlanFlagsFrom(const std::vector<std::string>& args);

// Bytes: "80GB" and "512MB" in powers of 1000, and the forms of the server's
// --kv_memory ("1GiB").
absl::StatusOr<int64_t> ParseMemory(const std::string& text);

}  // namespace strata

#endif  // PLANNER_PLAN_FLAGS_H_
