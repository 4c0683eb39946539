#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/bf16.h"
#include "tests/kernels/cuda/ptx_kernels.h"
#include "tests/testing/device_array.h"
#include "tests/testing/for_each_schedule.h"
#include "tests/testing/near.h"

namespace strata {
namespace {

// Small whole numbers, so that all sums are exact, with no symmetry.
int Whole(int i) { return (i * 37 + i * i * 11) % 17 - 8; }

std::vector<Bf16> WholeBf16s(int first, int count) {
  std::vector<Bf16> out;
  for (int i = 0; i < count; ++i) out.push_back(ToBf16(Whole(first + i)));
  return out;
}

TEST(PtxTest, MmaIsAMatrixProduct) {
  const std::vector<Bf16> a = WholeBf16s(0, 16 * 16), b = WholeBf16s(7, 16 * 8);
  std::vector<float> c(16 * 8), want(16 * 8);
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      c[m * 8 + n] = want[m * 8 + n] = Whole(m * 8 + n);
      for (int k = 0; k < 16; ++k) {
        want[m * 8 + n] += ToFloat(a[m * 16 + k]) * ToFloat(b[k * 8 + n]);
      }
    }
  }
  const DeviceArray<Bf16> device_a(a), device_b(b);
  for (auto multiply : {MultiplyByElement, MultiplyByMatrix}) {
    ForEachSchedule(4, [&] {
      const DeviceArray<float> device_c(c);
      EXPECT_EQ(multiply(device_a.get(), device_b.get(), device_c.get()),
                cudaSuccess);
      EXPECT_EQ(device_c.ToHost(), want);
    });
  }
}

TEST(PtxTest, TransposesAMatrix) {
  const std::vector<Bf16> in = WholeBf16s(0, 64);
  std::vector<Bf16> want;
  for (int i = 0; i < 64; ++i) want.push_back(in[i % 8 * 8 + i / 8]);
  const DeviceArray<Bf16> device_in(in), out(64);
  EXPECT_EQ(TransposeMatrix(device_in.get(), out.get()), cudaSuccess);
  EXPECT_EQ(out.ToHost(), want);
}

TEST(PtxTest, CopyThatIsNotValidGivesZeros) {
  const DeviceArray<float> in({1, 2, 3, 4}), out(8);
  EXPECT_EQ(CopyAndZero(in.get(), out.get()), cudaSuccess);
  EXPECT_EQ(out.ToHost(), std::vector<float>({1, 2, 3, 4, 0, 0, 0, 0}));
}

TEST(PtxTest, CopiesOfFourBytes) {
  const DeviceArray<float> in({1.0f, 2.0f}), out({5.0f, 6.0f, 7.0f});
  EXPECT_EQ(CopyAndZeroWord(in.get(), out.get()), cudaSuccess);
  EXPECT_EQ(out.ToHost(), (std::vector<float>{2.0f, 0.0f, 7.0f}));
}

TEST(PtxTest, Exp2OfAllSizes) {
  std::vector<float> in(32), want(32);
  for (int i = 0; i < 32; ++i) {
    in[i] = i == 0 ? -INFINITY : static_cast<float>(7.3 * (i - 16));
    want[i] = std::exp2(in[i]);
  }
  in[31] = -140.0f;  // its power is denormal
  want[31] = 0.0f;
  const DeviceArray<float> v(in);
  EXPECT_EQ(Exp2InPlace(v.get()), cudaSuccess);
  EXPECT_TRUE(AllNear(v.ToHost(), want, 0.0f, 1e-6f));
}

}  // namespace
}  // namespace strata
