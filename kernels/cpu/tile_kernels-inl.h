// The kernels of tile_kernels.h for one instruction set, which the including
// file describes by a struct Simd in the same (unnamed) namespace:
//
//   F, I            vectors of kLanes f32 and int32
//   kVectors        vectors that a pass holds; with kLanes it divides kTile
//   kFloatRows, kBf16Rows, kInt8Rows
//                   rows that share the weights in registers
//   StartU8, DotU8  sum of (u - 128) * s over the bytes of a lane, exactly
//   DotU4           the same of u * s with u < 16
//   kPairsOfU4      whether DotU4 leaves sums of 16 bits, which fit for a
//                   block, and AddPairs adds two to a lane
//   Quantize        32 activations as int8
//   Table, LoadTable  the upper bytes of a tile of bf16_in_12.h
//   kChunkInputs    of a chunk of tile_chunks-inl.h, which is faster
//   kExpandRows     from so many rows on, where it expands the weights
//   kChunkRows, kChunkRowsEnd  between them, where it does not
//   PairsIn12       kLanes pairs of BF16 weights, from `lane`, of such a step
//
// No include guard: once a file, after the pragma that selects the instruction
// set.

// Arrays of vectors are registers only where loops over them are gone.
#define UNROLL _Pragma("GCC unroll 16")

using F = Simd::F;
using I = Simd::I;

inline constexpr int kLanes = Simd::kLanes;
inline constexpr int kVectors = Simd::kVectors;

#include "kernels/cpu/tile_weights-inl.h"

// Registers of sums for kRows rows and the outputs of a pass.
template <int kRows>
struct Sums {
  F v[kRows][kVectors];

  // Zero, or `add` to what is in `sums`.
  Sums(bool add, const float* sums) {
    UNROLL for (int r = 0; r < kRows; ++r) {
      UNROLL for (int i = 0; i < kVectors; ++i) {
        v[r][i] = add ? Simd::LoadF32(sums + r * kTile + i * kLanes)
                      : Simd::SetF(0.0f);
      }
    }
  }
  void Store(float* sums) const {
    UNROLL for (int r = 0; r < kRows; ++r) {
      UNROLL for (int i = 0; i < kVectors; ++i) {
        Simd::Store(sums + r * kTile + i * kLanes, v[r][i]);
      }
    }
  }
};

// The first rows that a tile is multiplied with bring weights from memory.  The
// processor foresees too little of them: tiles of 576 inputs end every 10 KB,
// and the next one waits for its first lines.  (Zen 5: 16 rows of Q4_0 take
// three quarters of the time, one row four fifths.)  Nothing is asked for
// beyond the end of what is there: a prefetch does not fault.
inline constexpr int64_t kPrefetchDistance = 8192;
inline int64_t PrefetchDistance(const TileArgs& args, int first_row) {
  return first_row == 0 && args.in_memory ? kPrefetchDistance : 0;
}

template <int64_t kBytes>
inline void Prefetch(const std::byte* at) {
  for (int64_t line = 0; line < kBytes; line += 64) {
    __builtin_prefetch(at + line);
  }
}

// Weights of any format times f32 activations.
template <TileFormat kFormat>
struct FloatProduct {
  using W = Weights<kFormat>;
  static constexpr int64_t kBytesOfActivation = 4;
  // A step of two inputs takes more registers.
  static constexpr int kMaxRows =
      W::kStep == 2 ? Simd::kBf16Rows : Simd::kFloatRows;

  template <int kRows>
  static void Run(const TileArgs& args, int first_row, int lane) {
    float* const to = args.sums + first_row * kTile + lane;
    Sums<kRows> sums(args.add, to);
    const std::byte* x[kRows];
    UNROLL for (int r = 0; r < kRows; ++r) x[r] = args.rows.row(first_row + r);
    W weights(args.tile);
    const int64_t ahead = PrefetchDistance(args, first_row);
    const auto step = [&](int64_t k) __attribute__((always_inline)) {
      Prefetch<W::kStepBytes>(weights.step + ahead);
      UNROLL for (int i = 0; i < kVectors; ++i) {
        weights.ForEach(
            lane + i * kLanes, [&](int j, F w) __attribute__((always_inline)) {
              UNROLL for (int r = 0; r < kRows; ++r) {
                sums.v[r][i] = Simd::MulAdd(
                    w, Simd::BroadcastF32(x[r] + (k + j) * 4), sums.v[r][i]);
              }
            });
      }
      weights.Next();
    };
    int64_t k = 0;
    if constexpr (kFormat == TileFormat::kF32) {
      // Of a loop of few turns the processor foresees the end.  (Zen 3: prefill
      // of 512 in BF16 1.04 times as fast.)
      for (; k + 8 <= args.rows.cols; k += 8) {
        UNROLL for (int i = 0; i < 8; ++i) step(k + i);
      }
    }
    for (; k < args.rows.cols; k += W::kStep) step(k);
    sums.Store(to);
  }
};

// Quantised weights times int8 activations.
template <DType kType>
struct Int8Product {
  static constexpr int kMaxRows = Simd::kInt8Rows;
  static constexpr int64_t kBlockBytes = BlockBytes(kType) * kTile;
  static constexpr bool kPairs = Simd::kPairsOfU4 && kType != DType::kQ8_0;

  template <int kRows>
  static void Run(const TileArgs& args, int first_row, int lane) {
    float* const to = args.sums + first_row * kTile + lane;
    Sums<kRows> sums(args.add, to);
    const std::byte* x[kRows];
    UNROLL for (int r = 0; r < kRows; ++r) x[r] = args.rows.row(first_row + r);
    const std::byte* halves = args.tile + lane * 2;
    int64_t scales = args.rows.cols;  // of this block, from x[r]
    const int64_t ahead = PrefetchDistance(args, first_row);
    for (int64_t k = 0; k < args.rows.cols; k += 32) {
      Prefetch<kBlockBytes>(halves + ahead);
      I dots[kRows][kVectors];
      Start<kRows>(x, scales, dots);
      Dots<kRows>(halves + lane * 2, x, k, dots);
      if constexpr (kPairs) AddPairs<kRows>(x, scales, dots);
      AddDots<kRows>(halves, x, scales, dots, sums);
      halves += kBlockBytes;
      scales += sizeof(RowBlock);
    }
    sums.Store(to);
  }

 private:
  static inline F Scale(const std::byte* block) {
    return Simd::BroadcastF32(block + offsetof(RowBlock, scale));
  }

  // What sums of u * s lack to be those of (u - 8) * s.
  static inline I FromU4(const std::byte* minus_sum) {
    return Simd::template ShiftLeft<3>(Simd::BroadcastI32(minus_sum));
  }

  template <int kRows>
  static inline void Start(const std::byte* const (&x)[kRows], int64_t scales,
                           I (&dots)[kRows][kVectors]) {
    UNROLL for (int r = 0; r < kRows; ++r) {
      I start = Simd::Set(0);
      const std::byte* sum = x[r] + scales + offsetof(RowBlock, minus_sum);
      if constexpr (kType == DType::kQ8_0) start = Simd::StartU8(sum);
      if constexpr (kType == DType::kQ4_0 && !Simd::kPairsOfU4) {
        start = FromU4(sum);
      }
      UNROLL for (int i = 0; i < kVectors; ++i) dots[r][i] = start;
    }
  }

  // dots += the products of the block of inputs from k.
  template <int kRows>
  static inline void Dots(const std::byte* block,
                          const std::byte* const (&x)[kRows], int64_t k,
                          I (&dots)[kRows][kVectors]) {
    if constexpr (kType == DType::kQ8_0) {
      const std::byte* words = block + kTile * 2;
      UNROLL for (int g = 0; g < 8; ++g) {
        UNROLL for (int i = 0; i < kVectors; ++i) {
          const I u = Simd::LoadI32(words + (g * kTile + i * kLanes) * 4);
          UNROLL for (int r = 0; r < kRows; ++r) {
            dots[r][i] = Simd::DotU8(dots[r][i], u,
                                     Simd::BroadcastI32(x[r] + k + g * 4));
          }
        }
      }
    } else {
      const std::byte* words = block + kTile * (kType == DType::kQ4_1 ? 4 : 2);
      const I mask = Simd::Set(0x0f0f0f0f);
      UNROLL for (int g = 0; g < 4; ++g) {
        UNROLL for (int i = 0; i < kVectors; ++i) {
          const I u = Simd::LoadI32(words + (g * kTile + i * kLanes) * 4);
          const I low = Simd::And(u, mask);
          const I high = Simd::And(Simd::template ShiftRight<4>(u), mask);
          UNROLL for (int r = 0; r < kRows; ++r) {
            const std::byte* xk = x[r] + k + g * 4;
            dots[r][i] = Simd::DotU4(dots[r][i], low, Simd::BroadcastI32(xk));
            dots[r][i] =
                Simd::DotU4(dots[r][i], high, Simd::BroadcastI32(xk + 16));
          }
        }
      }
    }
  }

  template <int kRows>
  static inline void AddPairs(const std::byte* const (&x)[kRows],
                              int64_t scales, I (&dots)[kRows][kVectors]) {
    UNROLL for (int r = 0; r < kRows; ++r) {
      UNROLL for (int i = 0; i < kVectors; ++i) {
        dots[r][i] = Simd::AddPairs(dots[r][i]);
        if constexpr (kType == DType::kQ4_0) {
          dots[r][i] =
              Simd::Add(dots[r][i],
                        FromU4(x[r] + scales + offsetof(RowBlock, minus_sum)));
        }
      }
    }
  }

  // sums += dots times the scales of weights and activations, and the minima.
  template <int kRows>
  static inline void AddDots(const std::byte* halves,
                             const std::byte* const (&x)[kRows], int64_t scales,
                             const I (&dots)[kRows][kVectors],
                             Sums<kRows>& sums) {
    UNROLL for (int i = 0; i < kVectors; ++i) {
      const F d = Simd::LoadF16(halves + i * kLanes * 2);
      UNROLL for (int r = 0; r < kRows; ++r) {
        sums.v[r][i] =
            Simd::MulAdd(Simd::ToFloat(dots[r][i]),
                         Simd::Mul(d, Scale(x[r] + scales)), sums.v[r][i]);
      }
      if constexpr (kType == DType::kQ4_1) {
        const F m = Simd::LoadF16(halves + (kTile + i * kLanes) * 2);
        UNROLL for (int r = 0; r < kRows; ++r) {
          const std::byte* sum = x[r] + scales + offsetof(RowBlock, scaled_sum);
          sums.v[r][i] = Simd::MulAdd(m, Simd::BroadcastF32(sum), sums.v[r][i]);
        }
      }
    }
  }
};

template <class Product, int kRows>
void RunRows(const TileArgs& args, int first_row) {
  for (int lane = 0; lane < kTile; lane += kVectors * kLanes) {
    Product::template Run<kRows>(args, first_row, lane);
  }
}

// The same for `rows` <= kRows.
template <class Product, int kRows>
void RunRowsUpTo(const TileArgs& args, int first_row, int rows) {
  if constexpr (kRows > 0) {
    if (rows == kRows) {
      RunRows<Product, kRows>(args, first_row);
    } else {
      RunRowsUpTo<Product, kRows - 1>(args, first_row, rows);
    }
  }
}

// `before` is called before each pass.  The last two passes share their rows:
// one row has too few sums to keep the multipliers busy.
template <class Product, class Before>
inline void RunTile(const TileArgs& args, Before before) {
  constexpr int kMax = Product::kMaxRows;
  for (int r = 0; r < args.num_rows;) {
    const int rest = args.num_rows - r;
    const int rows = rest >= 2 * kMax ? kMax
                     : rest > kMax    ? (rest + 1) / 2
                                      : rest;
    before();
    RunRowsUpTo<Product, kMax>(args, r, rows);
    r += rows;
  }
}

template <class Product>
void RunTile(const TileArgs& args) {
  RunTile<Product>(args, [] {});
}

void PackF32Row(const float* x, int64_t cols, std::byte* row) {
  std::memcpy(row, x, cols * 4);
  const float zero = 0.0f;
  std::memcpy(row + cols * 4, &zero, 4);
}

void PackInt8Row(const float* x, int64_t cols, std::byte* row) {
  auto* block = reinterpret_cast<RowBlock*>(row + cols);
  for (int64_t k = 0; k < cols; k += 32) {
    *block++ = Simd::Quantize(x + k, reinterpret_cast<int8_t*>(row + k));
  }
}

void SiluMul(float* gate, const float* up, int64_t n) {
  const F one = Simd::SetF(1.0f);
  for (int64_t i = 0; i < n; i += kLanes) {
    const F g = Simd::LoadF32(gate + i);
    const F e = Simd::Exp(Simd::Mul(g, Simd::SetF(-1.0f)));
    const F silu = Simd::Div(g, Simd::Add(one, e));
    Simd::Store(gate + i, Simd::Mul(silu, Simd::LoadF32(up + i)));
  }
}

#include "kernels/cpu/tile_chunks-inl.h"

template <TileFormat kFormat>
constexpr TileProduct kFloat = {
    Chunks<FloatProduct, kFormat,
           kFormat == TileFormat::kF16 ? kFormat : TileFormat::kF32>::Run,
    RowType::kF32};
template <DType kType>
constexpr TileProduct kInt8 = {RunTile<Int8Product<kType>>, RowType::kInt8};

// `bf16` and `in_12` are the products of BF16 weights in 16 and 12 bits.
constexpr TileKernels MakeTileKernels(TileProduct bf16, TileProduct in_12,
                                      PackRowKernel pack_bf16) {
  using enum TileFormat;
  return {
      .fast = {kFloat<kF32>, kFloat<kF16>, bf16, kInt8<DType::kQ8_0>,
               kInt8<DType::kQ4_0>, kInt8<DType::kQ4_1>, in_12},
      .exact = {kFloat<kF32>, kFloat<kF16>, kFloat<kBF16>, kFloat<kQ8_0>,
                kFloat<kQ4_0>, kFloat<kQ4_1>, kFloat<kBF16In12>},
      .pack = {PackF32Row, pack_bf16, PackInt8Row},
      .silu_mul = SiluMul,
  };
}
