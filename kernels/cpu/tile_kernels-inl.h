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
//
// No include guard: once a file, after the pragma that selects the instruction
// set.

// Arrays of vectors are registers only where loops over them are gone.
#define UNROLL _Pragma("GCC unroll 16")

using F = Simd::F;
using I = Simd::I;

inline constexpr int kLanes = Simd::kLanes;
inline constexpr int kVectors = Simd::kVectors;

// Calls use(j, weights of input j) for each input of a step of `kStep` inputs,
// for kLanes outputs from `lane`.
template <DType kType>
struct Weights;

template <>
struct Weights<DType::kF32> {
  static constexpr int kStep = 1;
  template <class Use>
  static inline void ForEach(const std::byte* step, int lane, Use use) {
    use(0, Simd::LoadF32(step + lane * 4));
  }
};

template <>
struct Weights<DType::kF16> {
  static constexpr int kStep = 1;
  template <class Use>
  static inline void ForEach(const std::byte* step, int lane, Use use) {
    use(0, Simd::LoadF16(step + lane * 2));
  }
};

template <>
struct Weights<DType::kBF16> {
  static constexpr int kStep = 2;
  template <class Use>
  static inline void ForEach(const std::byte* step, int lane, Use use) {
    const I pairs = Simd::LoadI32(step + lane * 4);
    use(0, Simd::AsFloat(Simd::ShiftLeft<16>(pairs)));
    use(1, Simd::AsFloat(Simd::And(pairs, Simd::Set(int32_t(0xffff0000)))));
  }
};

template <>
struct Weights<DType::kQ8_0> {
  static constexpr int kStep = 32;
  template <class Use>
  static inline void ForEach(const std::byte* step, int lane, Use use) {
    const F d = Simd::LoadF16(step + lane * 2);
    for (int i = 0; i < 8; ++i) {
      I u = Simd::LoadI32(step + kTile * 2 + (i * kTile + lane) * 4);
      UNROLL for (int j = 0; j < 4; ++j) {
        const I q = Simd::Add(Simd::And(u, Simd::Set(255)), Simd::Set(-128));
        use(4 * i + j, Simd::Mul(d, Simd::ToFloat(q)));
        u = Simd::ShiftRight<8>(u);
      }
    }
  }
};

// `kOffset` is added to a nibble, `kHasMin` says that there is an m.
template <int kOffset, bool kHasMin>
struct NibbleWeights {
  static constexpr int kStep = 32;
  template <class Use>
  static inline void ForEach(const std::byte* step, int lane, Use use) {
    const F d = Simd::LoadF16(step + lane * 2);
    const F m = kHasMin ? Simd::LoadF16(step + (kTile + lane) * 2) : F{};
    const std::byte* nibbles = step + kTile * (kHasMin ? 4 : 2);
    for (int i = 0; i < 4; ++i) {
      I u = Simd::LoadI32(nibbles + (i * kTile + lane) * 4);
      UNROLL for (int j = 0; j < 8; ++j) {
        const I q = Simd::Add(Simd::And(u, Simd::Set(15)), Simd::Set(kOffset));
        F w = Simd::Mul(d, Simd::ToFloat(q));
        if constexpr (kHasMin) w = Simd::Add(w, m);
        use(4 * i + j / 2 + j % 2 * 16, w);
        u = Simd::ShiftRight<4>(u);
      }
    }
  }
};

template <>
struct Weights<DType::kQ4_0> : NibbleWeights<-8, false> {};

template <>
struct Weights<DType::kQ4_1> : NibbleWeights<0, true> {};

// Registers of sums for kRows rows and the outputs of a pass.
template <int kRows>
struct Sums {
  F v[kRows][kVectors];

  void Clear() {
    UNROLL for (int r = 0; r < kRows; ++r) {
      UNROLL for (int i = 0; i < kVectors; ++i) v[r][i] = Simd::SetF(0.0f);
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
inline int64_t PrefetchDistance(int first_row) {
  return first_row == 0 ? 8192 : 0;
}

template <int64_t kBytes>
inline void Prefetch(const std::byte* at) {
  for (int64_t line = 0; line < kBytes; line += 64) {
    __builtin_prefetch(at + line);
  }
}

// Weights of any type times f32 activations.
template <DType kType>
struct FloatProduct {
  static constexpr int kMaxRows =
      kType == DType::kBF16 ? Simd::kBf16Rows : Simd::kFloatRows;

  template <int kRows>
  static void Run(const TileArgs& args, int first_row, int lane) {
    using W = Weights<kType>;
    constexpr int64_t kStepBytes =
        W::kStep / BlockElements(kType) * BlockBytes(kType) * kTile;
    Sums<kRows> sums;
    sums.Clear();
    const std::byte* x[kRows];
    UNROLL for (int r = 0; r < kRows; ++r) x[r] = args.rows.row(first_row + r);
    const std::byte* step = args.tile;
    const int64_t ahead = PrefetchDistance(first_row);
    for (int64_t k = 0; k < args.rows.cols; k += W::kStep) {
      Prefetch<kStepBytes>(step + ahead);
      UNROLL for (int i = 0; i < kVectors; ++i) {
        W::ForEach(
            step,
            lane + i * kLanes, [&](int j, F w) __attribute__((always_inline)) {
              UNROLL for (int r = 0; r < kRows; ++r) {
                sums.v[r][i] = Simd::MulAdd(
                    w, Simd::BroadcastF32(x[r] + (k + j) * 4), sums.v[r][i]);
              }
            });
      }
      step += kStepBytes;
    }
    sums.Store(args.sums + first_row * kTile + lane);
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
    Sums<kRows> sums;
    sums.Clear();
    const std::byte* x[kRows];
    UNROLL for (int r = 0; r < kRows; ++r) x[r] = args.rows.row(first_row + r);
    const std::byte* halves = args.tile + lane * 2;
    int64_t scales = args.rows.cols;  // of this block, from x[r]
    const int64_t ahead = PrefetchDistance(first_row);
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
    sums.Store(args.sums + first_row * kTile + lane);
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

// The last `rows` <= kRows rows.
template <class Product, int kRows>
void RunRest(const TileArgs& args, int first_row, int rows) {
  if constexpr (kRows > 0) {
    if (rows == kRows) {
      RunRows<Product, kRows>(args, first_row);
    } else {
      RunRest<Product, kRows - 1>(args, first_row, rows);
    }
  }
}

template <class Product>
void RunTile(const TileArgs& args) {
  constexpr int kRows = Product::kMaxRows;
  int r = 0;
  for (; r + kRows <= args.num_rows; r += kRows) {
    RunRows<Product, kRows>(args, r);
  }
  RunRest<Product, kRows - 1>(args, r, args.num_rows - r);
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

template <DType kType>
constexpr TileProduct kFloat = {RunTile<FloatProduct<kType>>, RowType::kF32};
template <DType kType>
constexpr TileProduct kInt8 = {RunTile<Int8Product<kType>>, RowType::kInt8};

// `bf16` is the product of BF16 weights.
constexpr TileKernels MakeTileKernels(TileProduct bf16,
                                      PackRowKernel pack_bf16) {
  return {
      .fast = {kFloat<DType::kF32>, kFloat<DType::kF16>, bf16,
               kInt8<DType::kQ8_0>, kInt8<DType::kQ4_0>, kInt8<DType::kQ4_1>},
      .exact = {kFloat<DType::kF32>, kFloat<DType::kF16>, kFloat<DType::kBF16>,
                kFloat<DType::kQ8_0>, kFloat<DType::kQ4_0>,
                kFloat<DType::kQ4_1>},
      .pack = {PackF32Row, pack_bf16, PackInt8Row},
      .silu_mul = SiluMul,
  };
}
