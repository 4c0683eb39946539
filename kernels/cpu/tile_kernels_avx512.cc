// AVX-512 F, BW, VL, DQ, VNNI and BF16.
//
// One core of a 2-core EPYC (Zen 4) virtual machine shared with other work, by
// CPU time: peaks f32 118, bf16 236, int8 473 Gop/s, read 32 GB/s.  64 rows of
// 576 to 4096 inputs: F32 89 to 92 %, BF16 82 to 90 %, Q8_0 and Q4_0 58 to 67
// %, Q4_1 54 to 61 % of these (scaling a block of int8 sums takes a quarter as
// many cycles of the multipliers as its products).  One row of 576 inputs: from
// memory 30 GB/s (Q8_0) to 34 (BF16), from the caches 58 (Q4_0) to 91 (Q8_0).
//
// One core of a Zen 5 one, alone on it: peaks f32 268, bf16 500, int8 1070,
// read 36 GB/s.  64 rows from cache: BF16 all of it, Q8_0 and Q4_0 73, Q4_1 70
// %; 512 rows with packing, weights from memory and what is written: 94 and 55
// to 67 %. 16 rows from memory: Q4_0 60, Q8_0 50 %.  One row: 36 to 38 GB/s,
// all formats.  (BF16 in 16 bits; in 12 it has not been measured here.)
#if defined(__x86_64__)

// GCC 12 takes the operand that unmasked intrinsics leave undefined for a use
// of an uninitialised one.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/exp.h"
#include "kernels/cpu/tile_kernels.h"

// Below this line, so that no function of another header is compiled for
// AVX-512.
#pragma GCC push_options
#pragma GCC target( \
    "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16,avx2,fma,f16c")

namespace strata::cpu {
namespace {

struct Simd {
  using F = __m512;
  using I = __m512i;
  static constexpr int kLanes = 16;
  static constexpr int kVectors = 2;
  static constexpr int kFloatRows = 8;
  static constexpr int kBf16Rows = 8;
  static constexpr int kInt8Rows = 6;
  static constexpr int kChunkInputs = 768;
  static constexpr int kExpandRows = 32;
  static constexpr int kChunkRows = 0;
  static constexpr int kChunkRowsEnd = 0;

  static F LoadF32(const void* p) { return _mm512_loadu_ps(p); }
  static F LoadF16(const void* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  static I LoadI32(const void* p) { return _mm512_loadu_si512(p); }
  static void Store(float* p, F v) { _mm512_storeu_ps(p, v); }
  static F BroadcastF32(const void* p) { return AsFloat(BroadcastI32(p)); }
  static I BroadcastI32(const void* p) {
    int32_t v;
    std::memcpy(&v, p, 4);
    return _mm512_set1_epi32(v);
  }
  static F SetF(float v) { return _mm512_set1_ps(v); }
  static I Set(int32_t v) { return _mm512_set1_epi32(v); }
  static F AsFloat(I v) { return _mm512_castsi512_ps(v); }
  static F ToFloat(I v) { return _mm512_cvtepi32_ps(v); }
  static I Round(F v) { return _mm512_cvtps_epi32(v); }
  static F Add(F a, F b) { return _mm512_add_ps(a, b); }
  static I Add(I a, I b) { return _mm512_add_epi32(a, b); }
  static F Mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F Div(F a, F b) { return _mm512_div_ps(a, b); }
  static F Exp(F v) { return ExpAvx512(v); }
  static F MulAdd(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static I And(I a, I b) { return _mm512_and_si512(a, b); }
  template <int kBits>
  static I ShiftLeft(I v) {
    return _mm512_slli_epi32(v, kBits);
  }
  template <int kBits>
  static I ShiftRight(I v) {
    return _mm512_srli_epi32(v, kBits);
  }
  // The same 16 bytes in each quarter.
  using Table = __m512i;
  static Table LoadTable(const std::byte* table) {
    return _mm512_broadcast_i32x4(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  }
  static I PairsIn12(const std::byte* lower, const std::byte* codes,
                     Table upper, int lane) {
    const __m256i both =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    const I places = And(_mm512_inserti64x4(_mm512_castsi256_si512(both),
                                            _mm256_srli_epi16(both, 4), 1),
                         _mm512_set1_epi8(15));
    // From the order that suits halves to that for quarters.
    const I runs = _mm512_setr_epi64(0, 4, 2, 6, 1, 5, 3, 7);
    const I low = _mm512_permutexvar_epi64(runs, LoadI32(lower));
    const I high =
        _mm512_permutexvar_epi64(runs, _mm512_shuffle_epi8(upper, places));
    return lane == 0 ? _mm512_unpacklo_epi8(low, high)
                     : _mm512_unpackhi_epi8(low, high);
  }
  static I StartU8(const std::byte* minus_sum) {
    return ShiftLeft<7>(BroadcastI32(minus_sum));
  }
  static I DotU8(I acc, I u, I s) { return _mm512_dpbusd_epi32(acc, u, s); }
  static constexpr bool kPairsOfU4 = false;
  static I AddPairs(I dots) { return dots; }
  static I DotU4(I acc, I u, I s) { return _mm512_dpbusd_epi32(acc, u, s); }

  static RowBlock Quantize(const float* x, int8_t* q) {
    const F a = LoadF32(x), b = LoadF32(x + kLanes);
    const I sign = Set(int32_t(0x80000000));
    // As integers, infinities and NaN are above all numbers.
    const uint32_t bits = _mm512_reduce_max_epu32(
        _mm512_max_epu32(_mm512_andnot_si512(sign, _mm512_castps_si512(a)),
                         _mm512_andnot_si512(sign, _mm512_castps_si512(b))));
    const RowScale scale = RowScaleOf(bits);
    const I qa = Round(Mul(a, SetF(scale.inverse)));
    const I qb = Round(Mul(b, SetF(scale.inverse)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm512_cvtsepi32_epi8(qa));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + kLanes),
                     _mm512_cvtsepi32_epi8(qb));
    return RowBlockOf(scale, _mm512_reduce_add_epi32(Add(qa, qb)));
  }
};

#include "kernels/cpu/tile_kernels-inl.h"

// BF16 weights, in 16 or 12 bits, times bf16 activations.
template <TileFormat kFormat>
struct Bf16Product {
  static constexpr int kMaxRows = Simd::kFloatRows;
  static constexpr int64_t kBytesOfActivation = 2;

  template <int kRows>
  static void Run(const TileArgs& args, int first_row, int lane) {
    using W = Weights<kFormat>;
    static_assert(W::kStep == 2 && kVectors * kLanes == kTile);
    float* const to = args.sums + first_row * kTile + lane;
    Sums<kRows> sums(args.add, to);
    W weights(args.tile);
    const std::byte* x[kRows];
    UNROLL for (int r = 0; r < kRows; ++r) x[r] = args.rows.row(first_row + r);
    const int64_t ahead = PrefetchDistance(args, first_row);
    for (int64_t k = 0; k < args.rows.cols; k += W::kStep) {
      Prefetch<W::kStepBytes>(weights.step + ahead);
      const I w[] = {weights.Pairs(0), weights.Pairs(kLanes)};
      UNROLL for (int r = 0; r < kRows; ++r) {
        const I xk = Simd::BroadcastI32(x[r] + k * 2);
        UNROLL for (int i = 0; i < kVectors; ++i) {
          sums.v[r][i] =
              _mm512_dpbf16_ps(sums.v[r][i], (__m512bh)w[i], (__m512bh)xk);
        }
      }
      weights.Next();
    }
    sums.Store(to);
  }
};

void PackBf16Row(const float* x, int64_t cols, std::byte* row) {
  for (int64_t k = 0; k < cols; k += kLanes) {
    const __mmask16 lanes =
        cols - k >= kLanes ? 0xffff : (1u << (cols - k)) - 1;
    // One more than there are: the partner of an odd last input is zero.
    const __mmask16 stored = lanes << 1 | 1;
    _mm256_mask_storeu_epi16(
        row + k * 2, stored,
        (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(lanes, x + k)));
  }
}

template <TileFormat kFormat>
constexpr TileProduct kBf16 = {
    Chunks<Bf16Product, kFormat, TileFormat::kBF16>::Run, RowType::kBF16};

constexpr TileKernels kKernels = MakeTileKernels(
    kBf16<TileFormat::kBF16>, kBf16<TileFormat::kBF16In12>, PackBf16Row);

}  // namespace

const TileKernels& Avx512TileKernels() { return kKernels; }

}  // namespace strata::cpu

#pragma GCC pop_options

#endif  // defined(__x86_64__)
