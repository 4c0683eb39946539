#ifndef KERNELS_CPU_HALF_H_
#define KERNELS_CPU_HALF_H_

#include <bit>
#include <cstdint>

namespace strata::cpu {

// The value of an IEEE 754 binary16 given by its bits; exact.
inline float HalfToFloat(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00) {  // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ff) << 13);
  }
  // Shifted to f32's fields, the exponent is too small by 127 - 15; the product
  // corrects that and turns subnormals into normal numbers.
  const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

}  // namespace strata::cpu

#endif  // KERNELS_CPU_HALF_H_
