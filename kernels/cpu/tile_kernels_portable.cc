// The compiler's vectors of 16 bytes, which any machine has in some way.
#include <cmath>
#include <cstring>

#include "kernels/cpu/exp.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/tile_kernels.h"

namespace strata::cpu {
namespace {

struct Simd {
  using F = float __attribute__((vector_size(16)));
  using I = int32_t __attribute__((vector_size(16)));
  using U = uint32_t __attribute__((vector_size(16)));
  using Bytes = uint8_t __attribute__((vector_size(16)));
  using Words = uint64_t __attribute__((vector_size(16)));
  static constexpr int kLanes = 4;
  static constexpr int kVectors = 2;
  static constexpr int kFloatRows = 4;
  static constexpr int kBf16Rows = 4;
  static constexpr int kInt8Rows = 2;
  static constexpr int kChunkInputs = 192;
  static constexpr int kExpandRows = 12;
  static constexpr int kChunkRows = 6;
  static constexpr int kChunkRowsEnd = 32;

  template <class V>
  static V Load(const void* p) {
    V v;
    std::memcpy(&v, p, sizeof(v));
    return v;
  }
  static F LoadF32(const void* p) { return Load<F>(p); }
  static F LoadF16(const void* p) {
    uint16_t h[kLanes];
    std::memcpy(h, p, sizeof(h));
    return F{HalfToFloat(h[0]), HalfToFloat(h[1]), HalfToFloat(h[2]),
             HalfToFloat(h[3])};
  }
  static I LoadI32(const void* p) { return Load<I>(p); }
  static void Store(float* p, F v) { std::memcpy(p, &v, sizeof(v)); }
  static F BroadcastF32(const void* p) { return SetF(Load<float>(p)); }
  static I BroadcastI32(const void* p) { return Set(Load<int32_t>(p)); }
  static F SetF(float v) { return F{v, v, v, v}; }
  static I Set(int32_t v) { return I{v, v, v, v}; }
  static F AsFloat(I v) { return (F)v; }
  static F ToFloat(I v) { return __builtin_convertvector(v, F); }
  static F Add(F a, F b) { return a + b; }
  static I Add(I a, I b) { return a + b; }
  static F Mul(F a, F b) { return a * b; }
  static F Div(F a, F b) { return a / b; }
  static F Exp(F v) {
    return F{cpu::Exp(v[0]), cpu::Exp(v[1]), cpu::Exp(v[2]), cpu::Exp(v[3])};
  }
  static F MulAdd(F a, F b, F c) { return a * b + c; }
  static I And(I a, I b) { return a & b; }
  template <int kBits>
  static I ShiftLeft(I v) {
    return v << kBits;
  }
  template <int kBits>
  static I ShiftRight(I v) {
    return (I)((U)v >> kBits);
  }
  using Table = Bytes;
  static Table LoadTable(const std::byte* table) { return Load<Bytes>(table); }
  static I PairsIn12(const std::byte* lower, const std::byte* codes,
                     Table upper, int lane) {
    const int run = PlaceIn12(lane * 2);
    uint64_t low, both;
    std::memcpy(&low, lower + run, 8);
    std::memcpy(&both, codes + run % 32, 8);
    both = both >> (run < 32 ? 0 : 4) & 0x0f0f0f0f0f0f0f0f;
    const Bytes high = __builtin_shuffle(upper, (Bytes)Words{both, both});
    constexpr Bytes kInterleave = {0, 16, 1, 17, 2, 18, 3, 19,
                                   4, 20, 5, 21, 6, 22, 7, 23};
    return (I)__builtin_shuffle((Bytes)Words{low, low}, high, kInterleave);
  }
  static I StartU8(const std::byte* minus_sum) {
    return BroadcastI32(minus_sum) << 7;
  }
  static I DotU8(I acc, I u, I s) {
    for (int i = 0; i < 4; ++i) {
      acc += (u & 255) * (s << 24 >> 24);
      u = ShiftRight<8>(u);
      s >>= 8;
    }
    return acc;
  }
  static constexpr bool kPairsOfU4 = false;
  static I AddPairs(I dots) { return dots; }
  static I DotU4(I acc, I u, I s) { return DotU8(acc, u, s); }

  static RowBlock Quantize(const float* x, int8_t* q) {
    uint32_t max = 0;
    for (int i = 0; i < 32; ++i) {
      // As integers, infinities and NaN are above all numbers.
      const uint32_t bits = Load<uint32_t>(x + i) & 0x7fffffff;
      max = bits > max ? bits : max;
    }
    const RowScale scale = RowScaleOf(max);
    int32_t sum = 0;
    for (int i = 0; i < 32; ++i) {
      // Not finite: the scale says so.
      const float v = max < 0x7f800000 ? x[i] * scale.inverse : 0.0f;
      q[i] = static_cast<int8_t>(std::lrintf(v));
      sum += q[i];
    }
    return RowBlockOf(scale, sum);
  }
};

#include "kernels/cpu/tile_kernels-inl.h"

constexpr TileKernels kKernels = MakeTileKernels(
    kFloat<TileFormat::kBF16>, kFloat<TileFormat::kBF16In12>, nullptr);

}  // namespace

const TileKernels& PortableTileKernels() { return kKernels; }

}  // namespace strata::cpu
