// AVX2, FMA and F16C.
//
// One core of a 2-core EPYC (Zen 3) virtual machine: peaks f32 98 Gop/s, int8
// (a product and an addition of 16 bits) 392.  64 rows of 576 inputs: F32 93,
// F16 95, BF16 81 (two rows, as the mask leaves no register for a third; since
// then from 12 rows on it is expanded, see tile_chunks-inl.h), Q8_0 118 (its
// sums do not fit in 16 bits: four instructions where Q4_0 has two), Q4_0 195,
// Q4_1 177 (unpacking and scales take as long as the products); at times when
// other work slows the machine, 95, 150 and 140.  One row from the caches: 43
// (Q4_0) to 51 GB/s (Q8_0), F32 74.
#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/exp.h"
#include "kernels/cpu/tile_kernels.h"

// Below this line, so that no function of another header is compiled for AVX2.
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace strata::cpu {
namespace {

struct Simd {
  using F = __m256;
  using I = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kVectors = 4;
  static constexpr int kFloatRows = 3;
  static constexpr int kBf16Rows = 2;
  static constexpr int kInt8Rows = 2;
  static constexpr int kChunkInputs = 192;
  static constexpr int kExpandRows = 12;
  static constexpr int kChunkRows = 6;
  static constexpr int kChunkRowsEnd = 32;

  static F LoadF32(const void* p) {
    return _mm256_loadu_ps(static_cast<const float*>(p));
  }
  static F LoadF16(const void* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }
  static I LoadI32(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  static void Store(float* p, F v) { _mm256_storeu_ps(p, v); }
  static F BroadcastF32(const void* p) { return AsFloat(BroadcastI32(p)); }
  static I BroadcastI32(const void* p) {
    int32_t v;
    std::memcpy(&v, p, 4);
    return _mm256_set1_epi32(v);
  }
  static F SetF(float v) { return _mm256_set1_ps(v); }
  static I Set(int32_t v) { return _mm256_set1_epi32(v); }
  static F AsFloat(I v) { return _mm256_castsi256_ps(v); }
  static F ToFloat(I v) { return _mm256_cvtepi32_ps(v); }
  static I Round(F v) { return _mm256_cvtps_epi32(v); }
  static F Add(F a, F b) { return _mm256_add_ps(a, b); }
  static I Add(I a, I b) { return _mm256_add_epi32(a, b); }
  static F Mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F Div(F a, F b) { return _mm256_div_ps(a, b); }
  static F Exp(F v) { return ExpAvx2(v); }
  static F MulAdd(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static I And(I a, I b) { return _mm256_and_si256(a, b); }
  template <int kBits>
  static I ShiftLeft(I v) {
    return _mm256_slli_epi32(v, kBits);
  }
  template <int kBits>
  static I ShiftRight(I v) {
    return _mm256_srli_epi32(v, kBits);
  }
  // The same 16 bytes in each half.
  using Table = __m256i;
  static Table LoadTable(const std::byte* table) {
    return _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  }
  static I PairsIn12(const std::byte* lower, const std::byte* codes,
                     Table upper, int lane) {
    const I mask = _mm256_set1_epi8(15);
    const I low = LoadI32(lower + lane / 16 * 32);
    const I both = LoadI32(codes);
    const I high = _mm256_shuffle_epi8(
        upper, And(lane < 16 ? both : _mm256_srli_epi16(both, 4), mask));
    return lane % 16 == 0 ? _mm256_unpacklo_epi8(low, high)
                          : _mm256_unpackhi_epi8(low, high);
  }

  // Sums of pairs must fit in 16 bits: |u - 128| * |s| * 2 <= 128 * 127 * 2
  // does, u * |s| * 2 would not.
  static I StartU8(const std::byte*) { return Set(0); }
  static I DotU8(I acc, I u, I s) { return InOrder(Add(acc, ProductU8(u, s))); }
  static I ProductU8(I u, I s) {
    const I q = _mm256_xor_si256(u, Set(int32_t(0x80808080)));
    return AddPairs(
        _mm256_maddubs_epi16(_mm256_abs_epi8(q), _mm256_sign_epi8(s, q)));
  }
  // Of a block: 16 * 15 * 127 fits.
  static constexpr bool kPairsOfU4 = true;
  static I DotU4(I acc, I u, I s) {
    return InOrder(_mm256_add_epi16(acc, _mm256_maddubs_epi16(u, s)));
  }
  static I AddPairs(I pairs) {
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }
  // Keeps the compiler from summing as a tree, which has more products at a
  // time than there are registers.
  static I InOrder(I acc) {
    asm("" : "+x"(acc));
    return acc;
  }

  static RowBlock Quantize(const float* x, int8_t* q) {
    // As integers, infinities and NaN are above all numbers.
    I max = Set(0);
    for (int i = 0; i < 4; ++i) {
      max =
          _mm256_max_epi32(max, And(LoadI32(x + i * kLanes), Set(0x7fffffff)));
    }
    alignas(32) int32_t lanes[kLanes];
    _mm256_store_si256(reinterpret_cast<I*>(lanes), max);
    int32_t bits = 0;
    for (int32_t v : lanes) bits = v > bits ? v : bits;
    const RowScale scale = RowScaleOf(bits);
    I qs[4];
    for (int i = 0; i < 4; ++i) {
      qs[i] = Round(Mul(LoadF32(x + i * kLanes), SetF(scale.inverse)));
    }
    const I sums = Add(Add(qs[0], qs[1]), Add(qs[2], qs[3]));
    _mm256_store_si256(reinterpret_cast<I*>(lanes), sums);
    uint32_t sum = 0;  // overflows where a number is not finite
    for (int32_t v : lanes) sum += v;
    // Packing works within halves, which leaves groups of 4 in the order 0 2 4
    // 6 1 3 5 7.
    const I packed = _mm256_packs_epi16(_mm256_packs_epi32(qs[0], qs[1]),
                                        _mm256_packs_epi32(qs[2], qs[3]));
    const I order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<I*>(q),
                        _mm256_permutevar8x32_epi32(packed, order));
    return RowBlockOf(scale, static_cast<int32_t>(sum));
  }
};

#include "kernels/cpu/tile_kernels-inl.h"
// After it.
#include "kernels/cpu/int8_blocks_avx2-inl.h"

template <DType kType>
constexpr TileProduct kInt8Blocks = {Int8Blocks<kType>::Run, RowType::kInt8};

constexpr TileKernels MakeAvx2TileKernels() {
  TileKernels kernels = MakeTileKernels(kFloat<TileFormat::kBF16>,
                                        kFloat<TileFormat::kBF16In12>, nullptr);
  kernels.fast[static_cast<int>(DType::kQ8_0)] = kInt8Blocks<DType::kQ8_0>;
  kernels.fast[static_cast<int>(DType::kQ4_0)] = kInt8Blocks<DType::kQ4_0>;
  kernels.fast[static_cast<int>(DType::kQ4_1)] = kInt8Blocks<DType::kQ4_1>;
  return kernels;
}

constexpr TileKernels kKernels = MakeAvx2TileKernels();

}  // namespace

const TileKernels& Avx2TileKernels() { return kKernels; }

}  // namespace strata::cpu

#pragma GCC pop_options

#endif  // defined(__x86_64__)
