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
// the GPU's saturating conversion does; a NaN stays one.  Without a branch, so
// that loops of it become vectors.
inline Fp8 ToFp8(float v) {
  constexpr int32_t kMaxBits = std::bit_cast<int32_t>(kMaxFp8);
  constexpr int32_t kMinNormalBits = std::bit_cast<int32_t>(0x1p-6f);
  constexpr int32_t kInfinityBits = 0x7f800000;
  const auto word = std::bit_cast<int32_t>(v);
  const int32_t size_bits = word & 0x7fffffff;
  // The least of both, by a mask: of ?: compilers would make a branch, for the
  // sum below could trap.
  const int32_t is_larger = -int32_t{size_bits > kMaxBits};
  const int32_t clipped = size_bits ^ ((size_bits ^ kMaxBits) & is_larger);
  // Biased by 127; that of the least normal number for subnormal ones, too.
  const int32_t exponent =
      (clipped > kMinNormalBits ? clipped : kMinNormalBits) >> 23;
  // Added to this, what is below the last of 3 mantissa bits is rounded off.
  const int32_t large = (exponent + 23 - 3) << 23;
  const int32_t units = std::bit_cast<int32_t>(std::bit_cast<float>(clipped) +
                                               std::bit_cast<float>(large)) -
                        large;
  const int32_t rounded = units + ((exponent - (kMinNormalBits >> 23)) << 3);
  // A NaN has been clipped to 0x7e.
  const int32_t is_nan = size_bits > kInfinityBits;
  return static_cast<Fp8>((word >> 24 & 0x80) | rounded | is_nan);
}

}  // namespace strata

#endif  // KERNELS_FP8_H_
