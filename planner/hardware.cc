#include "planner/hardware.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/quote.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/thread_team.h"

namespace strata {
namespace {

// A GPU as NVIDIA's data sheet has it.
struct Gpu {
  const char* name;
  const char* words;
  int memory_gb;
  double read_gb_per_second;
  double teraflops;  // of dense bf16 products that are summed in f32
};

constexpr Gpu kGpus[] = {
    {"a10", "A10", 24, 600, 125},
    {"a100", "A100 SXM 80 GB", 80, 2039, 312},
    {"a100-40", "A100 40 GB", 40, 1555, 312},
    {"b200", "B200 (HGX)", 180, 8000, 2250},
    {"h100", "H100 SXM", 80, 3350, 989},
    {"h100-pcie", "H100 PCIe", 80, 2000, 756},
    {"h200", "H200 SXM", 141, 4800, 989},
    {"l4", "L4", 24, 300, 121},
    {"l40s", "L40S", 48, 864, 362},
    {"rtx4090", "GeForce RTX 4090", 24, 1008, 165},
};

double PeakGigaops(cpu::ThreadTeam& team, cpu::Isa isa, DType type,
                   bool exact_f32) {
  double rate = 0;
  if (!exact_f32 && BlockElements(type) > 1) rate = cpu::Int8Gigaops(team, isa);
  if (!exact_f32 && type == DType::kBF16) rate = cpu::Bf16Gigaflops(team, isa);
  return rate > 0 ? rate : cpu::F32Gigaflops(team, isa);
}

}  // namespace

absl::StatusOr<Hardware> FindHardware(std::string_view name) {
  if (name == "cpu") return Hardware{.name = "cpu", .description = "CPU"};
  if (name == "gpu") {
    return Hardware{
        .name = "gpu", .description = "a GPU as given", .is_gpu = true};
  }
  std::string allowed = "cpu";
  for (const Gpu& gpu : kGpus) {
    absl::StrAppend(&allowed, ", ", gpu.name);
    if (gpu.name != name) continue;
    return Hardware{
        .name = gpu.name,
        .description = absl::StrCat(gpu.words, ", by its data sheet"),
        .is_gpu = true,
        .memory_bytes = gpu.memory_gb * int64_t{1'000'000'000},
        .read_bytes_per_second = 1e9 * gpu.read_gb_per_second,
        .flops_per_second = 1e12 * gpu.teraflops};
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Quote(name), " is no device: allowed are ", allowed,
                   ", and gpu with --memory, --read_bandwidth and --flops"));
}

Hardware Several(Hardware hardware, int num_devices) {
  if (num_devices == 1) return hardware;
  hardware.description = absl::StrCat(num_devices, " x ", hardware.description);
  hardware.memory_bytes *= num_devices;
  hardware.read_bytes_per_second *= num_devices;
  hardware.flops_per_second *= num_devices;
  return hardware;
}

absl::Status MeasureCpu(int num_threads, DType type, bool exact_f32,
                        int64_t step_bytes, Hardware* cpu) {
  const cpu::Isa isa = cpu::DetectIsa();
  const bool is_measured =
      cpu->read_bytes_per_second == 0 || cpu->flops_per_second == 0;
  if (is_measured && isa == cpu::Isa::kPortable) {
    return absl::FailedPreconditionError(
        "this CPU has no AVX2, which the measuring loops use: give "
        "--read_bandwidth and --flops");
  }
  cpu::ThreadTeam team(num_threads);
  if (cpu->read_bytes_per_second == 0) {
    const int64_t num_bytes = std::min(step_bytes, cpu::kReadBytes);
    cpu->read_bytes_per_second = 1e9 * cpu::ReadGigabytes(team, num_bytes);
  }
  if (cpu->flops_per_second == 0) {
    cpu->flops_per_second = 1e9 * PeakGigaops(team, isa, type, exact_f32);
  }
  absl::StrAppend(&cpu->description, " (", cpu::IsaName(isa), "), ",
                  num_threads, " threads", is_measured ? ", measured now" : "");
  return absl::OkStatus();
}

}  // namespace strata
