#ifndef TESTS_GPU_BENCH_DEVICE_H_
#define TESTS_GPU_BENCH_DEVICE_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace strata {

// A benchmark has nobody to report an error to: it says it and ends.
[[noreturn]] inline void Die(const char* what, const char* why) {
  std::fprintf(stderr, "cuda_bench: %s: %s\n", what, why);
  std::exit(1);
}

inline void CheckCuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) Die(what, cudaGetErrorString(error));
}

inline int64_t FreeDeviceBytes() {
  size_t free = 0, total = 0;
  CheckCuda(cudaMemGetInfo(&free, &total), "free memory");
  return static_cast<int64_t>(free);
}

// Seconds that one call takes, `run` returning when all is done.
inline double SecondsOf(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

// The median of `repeats` calls, after two that are not counted.
inline double MedianSeconds(int repeats, const std::function<void()>& run) {
  run();
  run();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) seconds.push_back(SecondsOf(run));
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

}  // namespace strata

#endif  // TESTS_GPU_BENCH_DEVICE_H_
