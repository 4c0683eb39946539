#ifndef KERNELS_CPU_ATTENTION_KERNEL_INL_H_
#define KERNELS_CPU_ATTENTION_KERNEL_INL_H_

// The attention kernel over a type S of vector operations; included once by
// each attention_<isa>.cc, behind its target pragma and behind all other
// headers (so this one includes none and uses nothing of std).
//
// A row's result must not depend on the rows beside it.  So each score is one
// chain of multiply-adds over the dimensions and each element of acc one over
// the keys, both rising, in whatever register tile (R rows by C vectors) they
// are computed.
//
// Reached by one core of a shared 2-core Zen 4 server, AVX-512, bf16 pages of
// 16 positions in random order, best of many runs (a read loop reached 25 GB/s
// in order, 21 in runs of 4 KiB in random order):
//   decode  9/3 heads of 64, 4096 keys    20 GB/s   (29 from cache)
//   decode  32/8 heads of 128, 4096 keys  20 GB/s   (27 from cache)
//   512 rows behind 2048, 9/3 of 64       98 GFLOP/s, 80 with f32 pages
//   512 rows behind 2048, 32/8 of 128    106 GFLOP/s, 86 with f32 pages
// by one of a Zen 5 server (a read loop: 36 in order, 33 in runs of 4 KiB in
// random order, 26 with four such runs in turn, as the keys of a block are):
//   3 or 4 rows of 64, 128 dimensions      25, 24 GB/s  (70, 62 from cache)
//   9 rows of 64, 128 dimensions           22, 20 GB/s  (27, 29 from cache)
//   (asking for the next block tile by tile instead made it 20)
// and by one of a Zen 3 server, AVX2 (peak 98 GFLOP/s), from cache: three rows
// of 64 dimensions 17 GB/s, 24 rows 63 GFLOP/s.
namespace strata::cpu {
namespace {

// Memory is asked for a block before it is needed.
constexpr int kAheadTiles = kBlockTokens / 16;

inline void Prefetch(const std::byte* p) { __builtin_prefetch(p); }

// Scores of C vectors of keys from vector `first` of the block on, for R rows.
template <class S, KvType kType, int R, int C>
void ScoreKeys(const AttentionSplit& split, const std::byte* const* tiles,
               int row, int first) {
  using V = typename S::V;
  constexpr bool kDot = kType == KvType::kBF16 && S::kHasBf16Dot;
  const int steps = kType == KvType::kF32 ? split.head_dim : split.head_dim / 2;
  // Elements of 32 bits in a row of q.
  const int q_stride = kDot ? split.head_dim / 2 : split.head_dim;
  const float* q = static_cast<const float*>(split.q) + row * q_stride;
  const float* keys[C];
  const std::byte* ahead[C];
  V sums[R][C];
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) {
    const int key = (first + c) * S::kLanes;
    keys[c] = reinterpret_cast<const float*>(tiles[key / 16]) + key % 16;
    ahead[c] = tiles[key / 16 + kAheadTiles];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r][c] = S::Set1(0.0f);
  }
  for (int i = 0; i < steps; ++i) {
    V k[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      k[c] = S::Load(keys[c] + i * 16);
      if (c * S::kLanes % 16 == 0) Prefetch(ahead[c] + i * 64);
    }
    if constexpr (kType == KvType::kF32) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V x = S::Set1(q[r * q_stride + i]);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) sums[r][c] = S::Fma(x, k[c], sums[r][c]);
      }
    } else if constexpr (kDot) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V x = S::Set1(q[r * q_stride + i]);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c)
          sums[r][c] = S::Bf16Dot(x, k[c], sums[r][c]);
      }
    } else {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V low = S::Set1(q[r * q_stride + 2 * i]);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c)
          sums[r][c] = S::Fma(low, S::LowBf16(k[c]), sums[r][c]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V high = S::Set1(q[r * q_stride + 2 * i + 1]);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c)
          sums[r][c] = S::Fma(high, S::HighBf16(k[c]), sums[r][c]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      S::Store(
          split.scores + (row + r) * kBlockTokens + (first + c) * S::kLanes,
          sums[r][c]);
    }
  }
}

// acc = acc * scales + P V for C vectors of dimensions from `dim` on and R
// rows, over the block's keys [first, end).
template <class S, KvType kType, int R, int C>
void AddValues(const AttentionSplit& split, const std::byte* const* tiles,
               const float* scales, int row, int dim, int first, int end) {
  using V = typename S::V;
  constexpr int kElementBytes = kType == KvType::kF32 ? 4 : 2;
  const int64_t tile_bytes = int64_t{16} * split.head_dim * kElementBytes;
  const float* p = split.scores + row * kBlockTokens;
  float* acc = split.acc + row * split.acc_stride + dim;
  V sums[R][C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const V scale = S::Set1(scales[r]);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      sums[r][c] =
          S::Mul(S::Load(acc + r * split.acc_stride + c * S::kLanes), scale);
    }
  }
  for (int key = first; key < end;) {
    const std::byte* values = tiles[key / 16] + tile_bytes;
    const std::byte* ahead = tiles[key / 16 + kAheadTiles] + tile_bytes;
    const int tile_end = (key | 15) + 1 < end ? (key | 15) + 1 : end;
    for (; key < tile_end; ++key) {
      const int at = (key & 15) * split.head_dim + dim;
      V v[C];
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) {
        const int offset = kElementBytes * (at + c * S::kLanes);
        if constexpr (kType == KvType::kF32) {
          v[c] = S::Load(reinterpret_cast<const float*>(values + offset));
        } else {
          v[c] = S::LoadBf16(values + offset);
        }
        if (c * S::kLanes * kElementBytes % 64 == 0) Prefetch(ahead + offset);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V x = S::Set1(p[r * kBlockTokens + key]);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) sums[r][c] = S::Fma(x, v[c], sums[r][c]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      S::Store(acc + r * split.acc_stride + c * S::kLanes, sums[r][c]);
    }
  }
}

// Scores of R rows against the first num_keys of a block.
template <class S, KvType kType, int R>
void ScoreBlock(const AttentionSplit& split, const std::byte* const* tiles,
                int row, int num_keys) {
  // Whole tiles are there to read.
  const int vectors = (num_keys + 15) / 16 * (16 / S::kLanes);
  constexpr int kColumns = S::Columns(R);
  int first = 0;
  for (; first + kColumns <= vectors; first += kColumns) {
    ScoreKeys<S, kType, R, kColumns>(split, tiles, row, first);
  }
  for (; first < vectors; ++first)
    ScoreKeys<S, kType, R, 1>(split, tiles, row, first);
}

template <class S, KvType kType, int R>
void AddBlockValues(const AttentionSplit& split, const std::byte* const* tiles,
                    const float* scales, int row, int first, int end) {
  constexpr int kColumns = S::Columns(R);
  int dim = 0;
  for (; dim + kColumns * S::kLanes <= split.head_dim;
       dim += kColumns * S::kLanes) {
    AddValues<S, kType, R, kColumns>(split, tiles, scales, row, dim, first,
                                     end);
  }
  // The last vector may reach beyond the row into what follows; those lanes are
  // not used.
  for (; dim < split.head_dim; dim += S::kLanes) {
    AddValues<S, kType, R, 1>(split, tiles, scales, row, dim, first, end);
  }
}

// Turns the first num_keys scores of a row into exp(score - max) and updates
// its max and sum. Returns exp(old max - new max).  Compiled once, so that all
// register tiles share its roundings.
template <class S>
__attribute__((noinline)) float SoftmaxRow(const AttentionSplit& split, int row,
                                           int num_keys) {
  using V = typename S::V;
  float* scores = split.scores + row * kBlockTokens;
  const int padded = (num_keys + S::kLanes - 1) / S::kLanes * S::kLanes;
  for (int key = num_keys; key < padded; ++key) scores[key] = -__builtin_inff();
  V largest = S::Load(scores);
  for (int key = S::kLanes; key < padded; key += S::kLanes) {
    largest = S::Max(largest, S::Load(scores + key));
  }
  const float old_max = split.max[row], block_max = S::MaxAcross(largest);
  const float new_max = block_max > old_max ? block_max : old_max;
  const float scale = new_max == old_max ? 1.0f : Exp(old_max - new_max);
  const V max = S::Set1(new_max);
  float* lane_sums = split.lane_sums + row * 16;
  V sum = S::Mul(S::Load(lane_sums), S::Set1(scale));
  for (int key = 0; key < padded; key += S::kLanes) {
    const V p = S::Exp(S::Sub(S::Load(scores + key), max));
    S::Store(scores + key, p);
    sum = S::Add(sum, p);
  }
  S::Store(lane_sums, sum);
  split.max[row] = new_max;
  return scale;
}

// One block for R rows from `row` on, which all see a key of it.
template <class S, KvType kType, int R>
void AttendRows(const AttentionSplit& split, const std::byte* const* tiles,
                int row, int block_begin) {
  int num_keys[R];
  for (int r = 0; r < R; ++r) {
    const int keys = split.NumKeys(row + r) - block_begin;
    num_keys[r] = keys < kBlockTokens ? keys : kBlockTokens;
  }
  ScoreBlock<S, kType, R>(split, tiles, row, num_keys[R - 1]);
  float scales[R];
  for (int r = 0; r < R; ++r)
    scales[r] = SoftmaxRow<S>(split, row + r, num_keys[r]);
  AddBlockValues<S, kType, R>(split, tiles, scales, row, 0, num_keys[0]);
  // Values that only later rows see are not even multiplied by 0: they may be
  // NaN.
  const float one = 1.0f;
  for (int r = 1; r < R; ++r) {
    if (num_keys[r] > num_keys[0]) {
      AddBlockValues<S, kType, 1>(split, tiles, &one, row + r, num_keys[0],
                                  num_keys[r]);
    }
  }
}

// AttendRows of as many rows as there are, R at most; returns their number.
template <class S, KvType kType, int R>
int AttendSomeRows(const AttentionSplit& split, const std::byte* const* tiles,
                   int row, int block_begin) {
  if constexpr (R > 1) {
    if (split.rows - row < R) {
      return AttendSomeRows<S, kType, R - 1>(split, tiles, row, block_begin);
    }
  }
  AttendRows<S, kType, R>(split, tiles, row, block_begin);
  return R;
}

template <class S, KvType kType>
void AttendBlock(const AttentionSplit& split, int block_begin) {
  const std::byte* const* tiles = split.tiles + block_begin / 16;
  int row = 0;
  while (row < split.rows && split.NumKeys(row) <= block_begin) ++row;
  while (row < split.rows) {
    row += AttendSomeRows<S, kType, S::kRows>(split, tiles, row, block_begin);
  }
}

template <class S, KvType kType>
void AttendSplit(const AttentionSplit& split) {
  for (int row = 0; row < split.rows; ++row) {
    split.max[row] = -__builtin_inff();
    for (int i = 0; i < 16; ++i) split.lane_sums[row * 16 + i] = 0.0f;
    for (int d = 0; d < split.acc_stride; ++d)
      split.acc[row * split.acc_stride + d] = 0.0f;
  }
  for (int begin = 0; begin < split.num_keys; begin += kBlockTokens) {
    AttendBlock<S, kType>(split, begin);
  }
  for (int row = 0; row < split.rows; ++row) {
    float sum = 0.0f;
    for (int i = 0; i < S::kLanes; ++i) sum += split.lane_sums[row * 16 + i];
    split.sum[row] = sum;
  }
}

template <class S>
void Attend(const AttentionSplit& split) {
  if (split.type == KvType::kF32) {
    AttendSplit<S, KvType::kF32>(split);
  } else {
    AttendSplit<S, KvType::kBF16>(split);
  }
}

}  // namespace
}  // namespace strata::cpu

#endif  // KERNELS_CPU_ATTENTION_KERNEL_INL_H_
