// The device's fp8 numbers are the host's.
#include "kernels/fp8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/bf16.h"
#include "tests/kernels/cuda/fp8_kernels.h"
#include "tests/testing/device_array.h"

namespace strata {
namespace {

// Every number but NaN beside every other.
std::vector<Fp8> AllPairs() {
  std::vector<Fp8> numbers;
  for (int i = 0; i < 256; ++i) {
    for (int j = 0; j < 256; ++j) {
      if (i % 128 == 127 || j % 128 == 127) continue;
      numbers.push_back(Fp8{static_cast<uint8_t>(i)});
      numbers.push_back(Fp8{static_cast<uint8_t>(j)});
    }
  }
  return numbers;
}

TEST(CudaFp8Test, WideningIsExact) {
  const std::vector<Fp8> numbers = AllPairs();
  const int count = static_cast<int>(numbers.size());
  ASSERT_EQ(count % 4, 0);
  const DeviceArray<Fp8> in(numbers);
  const DeviceArray<Bf16> out(count);
  for (const auto widen : {WidenPairs, WidenFours}) {
    out.FillWithNan();
    EXPECT_EQ(widen(in.get(), out.get(), count), cudaSuccess);
    const std::vector<Bf16> got = out.ToHost();
    int num_wrong = 0;
    for (int i = 0; i < count; ++i) {
      num_wrong += got[i] != ToBf16(ToFloat(numbers[i]));
    }
    EXPECT_EQ(num_wrong, 0);
  }
}

TEST(CudaFp8Test, NarrowingRoundsAsTheHostDoes) {
  std::vector<float> numbers = {0.0f, -0.0f, 449.0f, -1e30f, INFINITY, 1e-30f};
  for (int bits = 0; bits < 0x7e; ++bits) {
    const float low = ToFloat(Fp8{static_cast<uint8_t>(bits)});
    const float high = ToFloat(Fp8{static_cast<uint8_t>(bits + 1)});
    const float middle = (low + high) / 2;
    for (const float v : {low, middle, std::nextafter(middle, low),
                          std::nextafter(middle, high)}) {
      numbers.push_back(v);
      numbers.push_back(-v);
    }
  }
  const int count = static_cast<int>(numbers.size());
  const DeviceArray<float> in(numbers);
  const DeviceArray<Fp8> out(count);
  EXPECT_EQ(NarrowPairs(in.get(), out.get(), count), cudaSuccess);
  const std::vector<Fp8> got = out.ToHost();
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(got[i], ToFp8(numbers[i])) << numbers[i];
  }
}

}  // namespace
}  // namespace strata
