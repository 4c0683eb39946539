#include "kernels/fp8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace strata {
namespace {

TEST(Fp8Test, KnownNumbers) {
  EXPECT_EQ(ToFloat(Fp8{0x00}), 0.0f);
  EXPECT_EQ(ToFloat(Fp8{0x01}), 0x1p-9f);  // the smallest
  EXPECT_EQ(ToFloat(Fp8{0x07}), 7 * 0x1p-9f);
  EXPECT_EQ(ToFloat(Fp8{0x08}), 0x1p-6f);  // the smallest normal one
  EXPECT_EQ(ToFloat(Fp8{0x38}), 1.0f);
  EXPECT_EQ(ToFloat(Fp8{0xbc}), -1.5f);
  EXPECT_EQ(ToFloat(Fp8{0x7e}), kMaxFp8);
  EXPECT_TRUE(std::isnan(ToFloat(Fp8{0x7f})));
  EXPECT_TRUE(std::isnan(ToFloat(Fp8{0xff})));
}

TEST(Fp8Test, EveryNumberStaysWhatItIs) {
  for (int bits = 0; bits < 256; ++bits) {
    const Fp8 number{static_cast<uint8_t>(bits)};
    if (bits % 128 == 127) continue;  // NaN
    EXPECT_EQ(ToFp8(ToFloat(number)), number) << bits;
  }
}

// Between two neighbours: to the nearer one, from the middle to the even one.
TEST(Fp8Test, RoundsToNearest) {
  constexpr float kFar = std::numeric_limits<float>::infinity();
  for (int bits = 0; bits < 0x7e; ++bits) {
    for (const int sign : {0, 0x80}) {
      const Fp8 low{static_cast<uint8_t>(sign | bits)};
      const Fp8 high{static_cast<uint8_t>(sign | (bits + 1))};
      const float middle = (ToFloat(low) + ToFloat(high)) / 2;
      EXPECT_EQ(ToFp8(middle), bits % 2 == 0 ? low : high) << bits;
      EXPECT_EQ(ToFp8(std::nextafter(middle, 0.0f)), low) << bits;
      const float away = std::nextafter(middle, sign == 0 ? kFar : -kFar);
      EXPECT_EQ(ToFp8(away), high) << bits;
    }
  }
}

TEST(Fp8Test, WhatIsTooLargeSaturates) {
  for (const float v : {449.0f, 464.0f, 480.0f, 1e30f, HUGE_VALF}) {
    EXPECT_EQ(ToFp8(v), Fp8{0x7e}) << v;
    EXPECT_EQ(ToFp8(-v), Fp8{0xfe}) << v;
  }
  EXPECT_EQ(ToFp8(1e-30f), Fp8{0x00});
  EXPECT_EQ(ToFp8(-0.0f), Fp8{0x80});
  EXPECT_TRUE(std::isnan(ToFloat(ToFp8(NAN))));
}

}  // namespace
}  // namespace strata
