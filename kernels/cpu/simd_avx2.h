#ifndef KERNELS_CPU_SIMD_AVX2_H_
#define KERNELS_CPU_SIMD_AVX2_H_

// Vector operations of AVX2 and FMA.  Included behind a target pragma, so it
// includes nothing: the includer has <cstddef> and kernels/cpu/exp.h before the
// pragma.
namespace strata::cpu {
namespace {

struct Avx2 {
  using V = __m256;
  static constexpr int kLanes = 8;
  // Of a register tile of attention: its rows at most, and its vectors beside
  // so many.
  static constexpr int kRows = 5;
  static constexpr int Columns(int rows) { return rows <= 2 ? 4 : 2; }
  static constexpr bool kHasBf16Dot = false;

  static V Load(const float* p) { return _mm256_loadu_ps(p); }
  static void Store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static V Set1(float x) { return _mm256_set1_ps(x); }
  static V Add(V a, V b) { return _mm256_add_ps(a, b); }
  static V Sub(V a, V b) { return _mm256_sub_ps(a, b); }
  static V Mul(V a, V b) { return _mm256_mul_ps(a, b); }
  static V Fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V Max(V a, V b) { return _mm256_max_ps(a, b); }
  static V Exp(V x) { return ExpAvx2(x); }

  static float MaxAcross(V v) {
    __m128 max =
        _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    max = _mm_max_ps(max, _mm_movehl_ps(max, max));
    max = _mm_max_ss(max, _mm_movehdup_ps(max));
    return _mm_cvtss_f32(max);
  }

  // v where a >= b, else 0.
  static V SelectGe(V a, V b, V v) {
    return _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_GE_OQ), v);
  }

  // Whether a lane has low <= v < high.
  static bool AnyWithin(V v, V low, V high) {
    return _mm256_movemask_ps(
               _mm256_and_ps(_mm256_cmp_ps(v, low, _CMP_GE_OQ),
                             _mm256_cmp_ps(v, high, _CMP_LT_OQ))) != 0;
  }

  static V LoadBf16(const std::byte* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static V LowBf16(V pairs) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_castps_si256(pairs), 16));
  }
  static V HighBf16(V pairs) {
    const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    return _mm256_and_ps(pairs, _mm256_castsi256_ps(mask));
  }
};

}  // namespace
}  // namespace strata::cpu

#endif  // KERNELS_CPU_SIMD_AVX2_H_
