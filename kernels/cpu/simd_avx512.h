#ifndef KERNELS_CPU_SIMD_AVX512_H_
#define KERNELS_CPU_SIMD_AVX512_H_

// Vector operations of AVX-512 (F, BW, DQ, VL, BF16).  Included behind a target
// pragma, so it includes nothing: the includer has <cstddef> and
// kernels/cpu/exp.h before the pragma.
namespace strata::cpu {
namespace {

struct Avx512 {
  using V = __m512;
  static constexpr int kLanes = 16;
  // Of a register tile of attention: its rows at most, and its vectors beside
  // so many.
  static constexpr int kRows = 6;
  static constexpr int Columns(int) { return 4; }
  static constexpr bool kHasBf16Dot = true;

  static V Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static V Set1(float x) { return _mm512_set1_ps(x); }
  static V Add(V a, V b) { return _mm512_add_ps(a, b); }
  static V Sub(V a, V b) { return _mm512_sub_ps(a, b); }
  static V Mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static V Fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  // Masks of ones: see exp.h.
  static V Max(V a, V b) { return _mm512_maskz_max_ps(0xffff, a, b); }
  static V Exp(V x) { return ExpAvx512(x); }

  static float MaxAcross(V v) {
    V max = Max(v, _mm512_maskz_shuffle_f32x4(0xffff, v, v, 0x4e));
    max = Max(max, _mm512_maskz_shuffle_f32x4(0xffff, max, max, 0xb1));
    max = Max(max, _mm512_maskz_permute_ps(0xffff, max, 0x4e));
    max = Max(max, _mm512_maskz_permute_ps(0xffff, max, 0xb1));
    return _mm512_cvtss_f32(max);
  }

  // v where a >= b, else 0.
  static V SelectGe(V a, V b, V v) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_GE_OQ), v);
  }

  // Whether a lane has low <= v < high.
  static bool AnyWithin(V v, V low, V high) {
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(v, low, _CMP_GE_OQ), v,
                                   high, _CMP_LT_OQ) != 0;
  }

  static V LoadBf16(const std::byte* p) {
    const __m256i bits =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m512i wide = _mm512_maskz_cvtepu16_epi32(0xffff, bits);
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, wide, 16));
  }

  // sum + the products of both pairs' elements.
  static V Bf16Dot(V a, V b, V sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a),
                            reinterpret_cast<__m512bh>(b));
  }
};

}  // namespace
}  // namespace strata::cpu

#endif  // KERNELS_CPU_SIMD_AVX512_H_
