#ifndef KERNELS_FP8_H_
#define KERNELS_FP8_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace strata {

// An fp8 number as its bits: E4M3 of the OCP 8-bit floating point
// specification, with 1 sign, 4 exponent (bias 7) and 3 mantissa bits.  No
// infinities; 0x7f and 0xff are NaN; the largest is 448, the smallest 2^-9.
enum class Fp8 : uint8_t {};

inline constexpr float kMaxFp8 = 448.0f;

inline float ToFloat(Fp8 v) {
  const int bits = static_cast<int>(v);
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if ((bits & 0x7f) == 0x7f) return std::nanf("");
  const float size = exponent > 0 ? std::ldexp(8.0f + mantissa, exponent - 10)
                                  : std::ldexp(float(mantissa), -9);
  return bits & 0x80 ? -size : size;
}

// Rounds to nearest, ties to even; what is larger than kMaxFp8 becomes it, as
// the GPU's saturating conversion does; a NaN stays one.
inline Fp8 ToFp8(float v) {
  const int sign = std::signbit(v) ? 0x80 : 0;
  if (std::isnan(v)) return static_cast<Fp8>(sign | 0x7f);
  const float size = std::fmin(std::fabs(v), kMaxFp8);
  int bits;
  if (size < 0x1p-6f) {  // subnormal, or the smallest normal number
    bits = static_cast<int>(std::nearbyint(size * 0x1p9f));
  } else {
    uint32_t word = std::bit_cast<uint32_t>(size);
    word += 0x7ffff + (word >> 20 & 1);  // 20 of 23 bits go
    bits = static_cast<int>(word >> 20) - (127 - 7) * 8;
  }
  return static_cast<Fp8>(sign | (bits > 0x7e ? 0x7e : bits));
}

}  // namespace strata

#endif  // KERNELS_FP8_H_
