#ifndef KERNELS_CPU_SIMD_PORTABLE_H_
#define KERNELS_CPU_SIMD_PORTABLE_H_

// Vector operations for every machine, under the same conditions as
// simd_avx512.h.
namespace strata::cpu {
namespace {

// Four lanes, which compilers know how to do on every machine.
struct Portable {
  using V = float __attribute__((vector_size(16)));
  using Bits = uint32_t __attribute__((vector_size(16)));
  static constexpr int kLanes = 4;
  // Of a register tile of attention: its rows at most, and its vectors beside
  // so many.
  static constexpr int kRows = 4;
  static constexpr int Columns(int) { return 2; }
  static constexpr bool kHasBf16Dot = false;

  static V Load(const float* p) {
    V v;
    std::memcpy(&v, p, sizeof(v));
    return v;
  }
  static void Store(float* p, V v) { std::memcpy(p, &v, sizeof(v)); }
  static V Set1(float x) { return V{x, x, x, x}; }
  static V Add(V a, V b) { return a + b; }
  static V Sub(V a, V b) { return a - b; }
  static V Mul(V a, V b) { return a * b; }
  static V Fma(V a, V b, V c) { return a * b + c; }
  static V Max(V a, V b) { return a > b ? a : b; }
  static V Exp(V x) {
    return V{cpu::Exp(x[0]), cpu::Exp(x[1]), cpu::Exp(x[2]), cpu::Exp(x[3])};
  }
  static float MaxAcross(V v) {
    const float a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
    return a > b ? a : b;
  }

  // v where a >= b, else 0.
  static V SelectGe(V a, V b, V v) { return a >= b ? v : V{}; }

  // Whether a lane has low <= v < high.
  static bool AnyWithin(V v, V low, V high) {
    for (int i = 0; i < kLanes; ++i) {
      if (v[i] >= low[i] && v[i] < high[i]) return true;
    }
    return false;
  }

  static V LoadBf16(const std::byte* p) {
    uint16_t bits[kLanes];
    std::memcpy(bits, p, sizeof(bits));
    return LowBf16(
        reinterpret_cast<V>(Bits{bits[0], bits[1], bits[2], bits[3]}));
  }
  static V LowBf16(V pairs) {
    return reinterpret_cast<V>(reinterpret_cast<Bits>(pairs) << 16);
  }
  static V HighBf16(V pairs) {
    return reinterpret_cast<V>(reinterpret_cast<Bits>(pairs) & 0xffff0000u);
  }
};

}  // namespace
}  // namespace strata::cpu

#endif  // KERNELS_CPU_SIMD_PORTABLE_H_
