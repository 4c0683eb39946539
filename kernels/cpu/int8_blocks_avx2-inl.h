// For tile_kernels_avx2.cc, which includes it behind tile_kernels-inl.h.  No
// include guard: once a file.

// Int8Product for several rows: all of them take a block of weights, from the
// first-level cache, before the next is looked at.  Their sums wait in memory:
// in registers, they left too few for what a block needs.  (16 rows of 576
// inputs in turn with sums in registers, on a quiet machine and on a busy one:
// Q8_0 1.09 and 1.15 times as fast, Q4_0 1.05 and 1.2 to 1.4, Q4_1 1.01 and
// 1.1.  One row and two lose a tenth and a twentieth.)
template <DType kType>
struct Int8Blocks {
  static constexpr int kMinRows = 3;
  static constexpr bool kQ8 = kType == DType::kQ8_0;
  static constexpr bool kHasMin = kType == DType::kQ4_1;
  static constexpr int kHalvesBytes = kTile * (kHasMin ? 4 : 2);
  static constexpr int64_t kBlockBytes = BlockBytes(kType) * kTile;
  static_assert(kVectors * kLanes == kTile);

  static void Run(const TileArgs& args) {
    if (args.num_rows < kMinRows) return RunTile<Int8Product<kType>>(args);
    if (!args.add) {
      std::memset(args.sums, 0, args.num_rows * kTile * sizeof(float));
    }
    const std::byte* block = args.tile;
    int64_t scales = args.rows.cols;  // of this block, from its inputs
    for (int64_t k = 0; k < args.rows.cols; k += 32) {
      Prefetch<kBlockBytes>(block + kPrefetchDistance);
      const std::byte* x = args.rows.data + k;
      float* sums = args.sums;
      int rows = args.num_rows;
      // Four rows share |q| and q of two vectors, a twentieth faster than two
      // and four.  With nibbles it is slower: a row has two words to load where
      // it has one here.
      if constexpr (kQ8) {
        for (; rows >= 4; rows -= 4) {
          for (int first = 0; first < kVectors; first += 2) {
            AddRows<4, 2>(block, first, x, args.rows.stride, scales, sums);
          }
          x += 4 * args.rows.stride;
          sums += 4 * kTile;
        }
      }
      for (; rows >= 2; rows -= 2) {
        AddRows<2, 4>(block, 0, x, args.rows.stride, scales, sums);
        x += 2 * args.rows.stride;
        sums += 2 * kTile;
      }
      if (rows > 0) AddRows<1, 4>(block, 0, x, args.rows.stride, scales, sums);
      block += kBlockBytes;
      scales += int64_t{sizeof(RowBlock)} - 32;
    }
  }

 private:
  // sums += the products of a block of the inputs at `row` and the rows that
  // follow it, for kCount vectors of outputs from the one `first`.
  template <int kRows, int kCount>
  [[gnu::always_inline]] static inline void AddRows(
      const std::byte* block, int first, const std::byte* row, int64_t stride,
      int64_t scales, float* sums) {
    const std::byte* x[kRows];
    UNROLL for (int r = 0; r < kRows; ++r) {
      x[r] = row + r * stride;
      asm("" : "+r"(x[r]));  // no register for each sum of it and a constant
    }
    I dots[kRows][kCount];
    Dots(block + kHalvesBytes + first * kLanes * 4, x, scales, dots);
    const std::byte* halves = block + first * kLanes * 2;
    sums += first * kLanes;
    F d[kCount], m[kCount];
    UNROLL for (int i = 0; i < kCount; ++i) {
      d[i] = Simd::LoadF16(halves + i * kLanes * 2);
      if constexpr (kHasMin) {
        m[i] = Simd::LoadF16(halves + (kTile + i * kLanes) * 2);
      }
    }
    UNROLL for (int r = 0; r < kRows; ++r) {
      const std::byte* of = x[r] + scales;
      const F scale = Simd::BroadcastF32(of + offsetof(RowBlock, scale));
      UNROLL for (int i = 0; i < kCount; ++i) {
        const I dot = kQ8 ? dots[r][i] : Simd::AddPairs(dots[r][i]);
        float* at = sums + r * kTile + i * kLanes;
        F sum = Simd::MulAdd(Simd::ToFloat(dot), Simd::Mul(d[i], scale),
                             Simd::LoadF32(at));
        if constexpr (kHasMin) {
          sum = Simd::MulAdd(
              m[i], Simd::BroadcastF32(of + offsetof(RowBlock, scaled_sum)),
              sum);
        }
        Simd::Store(at, sum);
      }
    }
  }

  template <int kRows, int kCount>
  static inline void Dots(const std::byte* words,
                          const std::byte* const (&x)[kRows], int64_t scales,
                          I (&dots)[kRows][kCount]) {
    UNROLL for (int g = 0; g < (kQ8 ? 8 : 4); ++g) {
      UNROLL for (int i = 0; i < kCount; ++i) {
        const I u = Simd::LoadI32(words + (g * kTile + i * kLanes) * 4);
        const I mask = Simd::Set(0x0f0f0f0f);
        const I low = Simd::And(u, mask);
        const I high = Simd::And(Simd::ShiftRight<4>(u), mask);
        UNROLL for (int r = 0; r < kRows; ++r) {
          const I s = Simd::BroadcastI32(x[r] + g * 4);
          I& dot = dots[r][i];
          if constexpr (kQ8) {
            const I product = Simd::ProductU8(u, s);
            dot = g == 0 ? product : Simd::InOrder(Simd::Add(dot, product));
          } else {
            if (g > 0) {
              dot = Simd::DotU4(dot, low, s);
            } else if (kHasMin) {
              dot = _mm256_maddubs_epi16(low, s);
            } else {
              dot = Simd::DotU4(StartU4(x[r] + scales), low, s);
            }
            dot = Simd::DotU4(dot, high, Simd::BroadcastI32(x[r] + g * 4 + 16));
          }
        }
      }
    }
  }

  // -8 times the sum of activations, half of it in each of the sums of 16 bits
  // that AddPairs adds.  They still fit: one is the sum of (u - 4) * s over its
  // inputs and of -4 * s over the other's, at most 16 * (11 + 4) * 127.
  static inline I StartU4(const std::byte* row_block) {
    int16_t minus_sum;  // the lower half, which the sum of 32 int8 fits in
    std::memcpy(&minus_sum, row_block + offsetof(RowBlock, minus_sum), 2);
    return _mm256_slli_epi16(_mm256_set1_epi16(minus_sum), 2);
  }
};
