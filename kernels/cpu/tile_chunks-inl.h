// Products of many rows: for tile_kernels-inl.h, which includes it.  No include
// guard: once a file.

// A chunk of the inputs of a tile is multiplied with all rows before the next
// is looked at, as Product of kTo.  Weights of another format are expanded to
// it once for all rows, and not in the registers of every few.  Sums are
// continued where the chunk before left them, so their bits are those of
// Product<kFormat>.
//
// Meanwhile the weights further on come from memory, some lines before every
// pass of rows: if the first rows ask for all, memory and arithmetic wait for
// each other.  (Zen 3, 16 rows of weights in memory, beside all that in the
// first rows and whole tiles expanded: F32 1.2 to 1.3 times as fast, BF16 in 12
// bits 1.1 to 1.25; 512 rows the same.)
template <template <TileFormat> class Product, TileFormat kFormat,
          TileFormat kTo>
struct Chunks {
  using W = Weights<kFormat>;
  static constexpr bool kExpands = kFormat != kTo;
  static constexpr int64_t kInputs = Simd::kChunkInputs;
  static constexpr int64_t kBytes = kInputs / W::kStep * W::kStepBytes;
  static constexpr int kRows = Product<kTo>::kMaxRows;

  static void Run(const TileArgs& args) {
    if (!IsFaster(args.num_rows)) return RunTile<Product<kFormat>>(args);
    alignas(64) std::byte expanded[kExpands ? ExpandedBytes() : 1];
    W weights(args.tile);
    TileArgs chunk = args;
    chunk.in_memory = false;
    const int64_t share =
        kBytes / ((args.num_rows + kRows - 1) / kRows) / 64 * 64 + 64;
    for (int64_t k = 0; k < args.rows.cols; k += kInputs) {
      chunk.tile = kExpands ? expanded : weights.step;
      chunk.rows.cols = args.rows.cols - k;
      if (chunk.rows.cols > kInputs) chunk.rows.cols = kInputs;
      const std::byte* ahead = weights.step + kPrefetchDistance;
      if constexpr (kExpands) {
        Expand(weights, chunk.rows.cols, expanded);
      } else {
        weights.step += kBytes;
      }
      RunTile<Product<kTo>>(
          chunk, [&]() __attribute__((always_inline)) {
            const std::byte* const to = ahead + share;
            for (; ahead < to; ahead += 64) __builtin_prefetch(ahead);
          });
      chunk.add = true;
      chunk.rows.data += kInputs * Product<kTo>::kBytesOfActivation;
    }
  }

 private:
  static bool IsFaster(int rows) {
    if constexpr (kExpands) return rows >= Simd::kExpandRows;
    return rows >= Simd::kChunkRows && rows < Simd::kChunkRowsEnd;
  }

  static constexpr int64_t ExpandedBytes() {
    using To = Weights<kTo>;
    return kInputs / To::kStep * To::kStepBytes;
  }

  // The next `inputs` of `weights`.
  static inline void Expand(W& weights, int64_t inputs, std::byte* to) {
    static_assert(kInputs % W::kStep == 0);
    auto* out = reinterpret_cast<float*>(to);
    for (int64_t k = 0; k < inputs; k += W::kStep) {
      UNROLL for (int lane = 0; lane < kTile; lane += kLanes) {
        if constexpr (kTo == TileFormat::kBF16) {
          Simd::Store(out + lane, Simd::AsFloat(weights.Pairs(lane)));
        } else {
          weights.ForEach(
              lane, [&](int j, F w) __attribute__((always_inline)) {
                Simd::Store(out + j * kTile + lane, w);
              });
        }
      }
      out += W::kStep * kTile / (kTo == TileFormat::kBF16 ? 2 : 1);
      weights.Next();
    }
  }
};
