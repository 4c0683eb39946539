#ifndef KERNELS_CPU_EXP_H_
#define KERNELS_CPU_EXP_H_

#include <bit>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// e^x in f32, wrong by less than 2 units in the last place: x = n ln 2 + r with
// |r| <= ln 2 / 2, then a polynomial of e^r (coefficients of Cephes' expf)
// times 2^n.
//
// -infinity and what underflows (x < -87.33) give 0, x > 88.72 gives infinity,
// a NaN stays one.
namespace strata::cpu {

inline constexpr float kExpMin =
    -87.336544f;  // the least x with a normal result
inline constexpr float kExpMax =
    89.0f;  // the result is infinite well before it
inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2High =
    0.693359375f;  // few bits, so n * kLn2High is exact
inline constexpr float kLn2Low = -2.12194440e-4f;
inline constexpr float kExpPolynomial[] = {1.9875691500e-4f, 1.3981999507e-3f,
                                           8.3334519073e-3f, 4.1665795894e-2f,
                                           1.6666665459e-1f, 5.0000001201e-1f};
// Adding it to a small x and subtracting it again rounds x to an integer.
inline constexpr float kRoundToInteger = 0x1.8p23f;

inline float Exp(float x) {
  if (x < kExpMin) return 0.0f;
  if (x > kExpMax) x = kExpMax;
  const float n = x * kLog2E + kRoundToInteger - kRoundToInteger;
  const float r = x - n * kLn2High - n * kLn2Low;
  float y = kExpPolynomial[0];
  for (int i = 1; i < 6; ++i) y = y * r + kExpPolynomial[i];
  y = y * (r * r) + r + 1.0f;
  // 2^n in two factors, as n may be 128.  A NaN's n must not be converted.
  const int exponent = n == n ? static_cast<int>(n) : 0;
  const int half = exponent / 2;
  return y * std::bit_cast<float>((half + 127) << 23) *
         std::bit_cast<float>((exponent - half + 127) << 23);
}

#if defined(__x86_64__)

__attribute__((target("avx2,fma"))) inline __m256 ExpAvx2(__m256 x) {
  // A comparison or minimum whose second operand is x keeps a NaN.
  const __m256 is_normal =
      _mm256_cmp_ps(x, _mm256_set1_ps(kExpMin), _CMP_NLT_UQ);
  const __m256 clamped = _mm256_max_ps(
      _mm256_set1_ps(kExpMin), _mm256_min_ps(_mm256_set1_ps(kExpMax), x));
  const __m256 n =
      _mm256_round_ps(_mm256_mul_ps(clamped, _mm256_set1_ps(kLog2E)),
                      _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(kLn2High), clamped);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(kLn2Low), r);
  __m256 y = _mm256_set1_ps(kExpPolynomial[0]);
  for (int i = 1; i < 6; ++i)
    y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(kExpPolynomial[i]));
  y = _mm256_fmadd_ps(y, _mm256_mul_ps(r, r), r);
  y = _mm256_add_ps(y, _mm256_set1_ps(1.0f));
  const __m256i exponent = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(exponent, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i other_half = _mm256_sub_epi32(exponent, half);
  y = _mm256_mul_ps(y, _mm256_castsi256_ps(_mm256_slli_epi32(
                           _mm256_add_epi32(half, bias), 23)));
  y = _mm256_mul_ps(y, _mm256_castsi256_ps(_mm256_slli_epi32(
                           _mm256_add_epi32(other_half, bias), 23)));
  return _mm256_and_ps(y, is_normal);
}

// Masks of ones, as GCC 12 takes the unmasked forms' undefined operand for a
// use of an uninitialised one.
__attribute__((target("avx512f"))) inline __m512 ExpAvx512(__m512 x) {
  constexpr __mmask16 kAll = 0xffff;
  const __mmask16 is_normal =
      _mm512_cmp_ps_mask(x, _mm512_set1_ps(kExpMin), _CMP_NLT_UQ);
  const __m512 clamped = _mm512_maskz_max_ps(
      kAll, _mm512_set1_ps(kExpMin),
      _mm512_maskz_min_ps(kAll, _mm512_set1_ps(kExpMax), x));
  const __m512 n = _mm512_maskz_roundscale_ps(
      kAll, _mm512_mul_ps(clamped, _mm512_set1_ps(kLog2E)),
      _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(kLn2High), clamped);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(kLn2Low), r);
  __m512 y = _mm512_set1_ps(kExpPolynomial[0]);
  for (int i = 1; i < 6; ++i)
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(kExpPolynomial[i]));
  y = _mm512_fmadd_ps(y, _mm512_mul_ps(r, r), r);
  y = _mm512_add_ps(y, _mm512_set1_ps(1.0f));
  return _mm512_maskz_scalef_ps(is_normal, y, n);
}

#endif  // defined(__x86_64__)

}  // namespace strata::cpu

#endif  // KERNELS_CPU_EXP_H_
