// The weights of a tile as f32, of every format: for tile_kernels-inl.h, which
// includes it.  No include guard: once a file.

// The weights of a tile, step by step of kStep inputs.  ForEach calls use(j,
// weights of input j) for each input of a step, for kLanes outputs from `lane`.
template <TileFormat kFormat>
struct Weights;

template <int kInputs, int64_t kBytes>
struct Steps {
  static constexpr int kStep = kInputs;
  static constexpr int64_t kStepBytes = kBytes;
  const std::byte* step;
  void Next() { step += kBytes; }
};

template <>
struct Weights<TileFormat::kF32> : Steps<1, kTile * 4> {
  explicit Weights(const std::byte* tile) : Steps{tile} {}
  template <class Use>
  inline void ForEach(int lane, Use use) const {
    use(0, Simd::LoadF32(step + lane * 4));
  }
};

template <>
struct Weights<TileFormat::kF16> : Steps<1, kTile * 2> {
  explicit Weights(const std::byte* tile) : Steps{tile} {}
  template <class Use>
  inline void ForEach(int lane, Use use) const {
    use(0, Simd::LoadF16(step + lane * 2));
  }
};

// Of pairs of BF16, each an I.
template <class Use>
inline void ForBoth(I pairs, Use use) {
  use(0, Simd::AsFloat(Simd::ShiftLeft<16>(pairs)));
  use(1, Simd::AsFloat(Simd::And(pairs, Simd::Set(int32_t(0xffff0000)))));
}

template <>
struct Weights<TileFormat::kBF16> : Steps<2, kTile * 4> {
  explicit Weights(const std::byte* tile) : Steps{tile} {}
  inline I Pairs(int lane) const { return Simd::LoadI32(step + lane * 4); }
  template <class Use>
  inline void ForEach(int lane, Use use) const {
    ForBoth(Pairs(lane), use);
  }
};

template <>
struct Weights<TileFormat::kBF16In12> : Steps<2, kIn12StepBytes> {
  const Simd::Table upper;
  explicit Weights(const std::byte* tile)
      : Steps{tile + kIn12TableBytes}, upper(Simd::LoadTable(tile)) {}
  inline I Pairs(int lane) const {
    return Simd::PairsIn12(step, step + kIn12LowerBytes, upper, lane);
  }
  template <class Use>
  inline void ForEach(int lane, Use use) const {
    ForBoth(Pairs(lane), use);
  }
};

template <>
struct Weights<TileFormat::kQ8_0>
    : Steps<32, BlockBytes(DType::kQ8_0) * kTile> {
  explicit Weights(const std::byte* tile) : Steps{tile} {}
  template <class Use>
  inline void ForEach(int lane, Use use) const {
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
template <DType kType, int kOffset, bool kHasMin>
struct NibbleWeights : Steps<32, BlockBytes(kType) * kTile> {
  explicit NibbleWeights(const std::byte* tile)
      : Steps<32, BlockBytes(kType) * kTile>{tile} {}
  template <class Use>
  inline void ForEach(int lane, Use use) const {
    const std::byte* step = this->step;
    const F d = Simd::LoadF16(step + lane * 2);
    const F m = kHasMin ? Simd::LoadF16(step + (kTile + lane) * 2) : F{};
    const std::byte* nibbles = step + kTile * (kHasMin ? 4 : 2);
    for (int i = 0; i < 8; ++i) {
      I u = Simd::LoadI32(nibbles + (i % 4 * kTile + lane) * 4);
      if (i >= 4) u = Simd::ShiftRight<4>(u);
      UNROLL for (int j = 0; j < 4; ++j) {
        const I q = Simd::Add(Simd::And(u, Simd::Set(15)), Simd::Set(kOffset));
        F w = Simd::Mul(d, Simd::ToFloat(q));
        if constexpr (kHasMin) w = Simd::Add(w, m);
        use(4 * i + j, w);
        u = Simd::ShiftRight<8>(u);
      }
    }
  }
};

template <>
struct Weights<TileFormat::kQ4_0> : NibbleWeights<DType::kQ4_0, -8, false> {
  using NibbleWeights::NibbleWeights;
};

template <>
struct Weights<TileFormat::kQ4_1> : NibbleWeights<DType::kQ4_1, 0, true> {
  using NibbleWeights::NibbleWeights;
};
