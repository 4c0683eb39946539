#ifndef KERNELS_CUDA_DECODE_TILE_CUH_
#define KERNELS_CUDA_DECODE_TILE_CUH_

#include <cstdint>

#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/paged_kv.cuh"
#include "kernels/cuda/ptx.cuh"

// The tiles of 16 tokens that decode attention works on: how they get from the
// pages to shared memory, and from there to fragments.
namespace strata::cuda {

inline constexpr int kTileTokens = 16;

// Keys and values of a tile in shared memory.  Of 16 channels each,
//
//   ForEachKeys    calls use(i, k): the keys as A [16 tokens, 16 channels]
//   ForEachValues  calls use(i, v): the values as A [16 channels, 16 tokens]
//
// for i = 0, 1, ... .  Which channel is which column of k is the format's
// choice; LoadQuery makes a query's B fragment fit it, and ChannelOf tells
// which channel is row r of v.
template <typename Element, int kHeadDim>
struct Tile;

template <int kHeadDim>
struct Tile<Bf16, kHeadDim> {
  uint4 k[kTileTokens][kRowChunks<Bf16, kHeadDim>];
  uint4 v[kTileTokens][kRowChunks<Bf16, kHeadDim>];

  template <typename Use>
  __device__ void ForEachKeys(Use use) const {
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < kHeadDim / 16; ++i) {
      uint32_t fragment[4];
      Ldmatrix(fragment, &k[lane % 16][2 * i + lane / 16]);
      use(i, fragment);
    }
  }
  template <typename Use>
  __device__ void ForEachValues(Use use) const {
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < kHeadDim / 16; ++i) {
      uint32_t fragment[4];
      LdmatrixTrans(fragment,
                    &v[lane % 8 + lane / 16 * 8][2 * i + lane / 8 % 2]);
      use(i, fragment);
    }
  }
  __device__ static void LoadQuery(uint32_t (&b)[2], const Bf16* q, int i) {
    const Bf16* at = q + 16 * i + threadIdx.x % 4 * 2;
    b[0] = *reinterpret_cast<const uint32_t*>(at);
    b[1] = *reinterpret_cast<const uint32_t*>(at + 8);
  }
  __device__ static int ChannelOf(int i, int r) { return 16 * i + r; }

  // What the logits and the weights of the tile's token are to be multiplied
  // with.
  __device__ static float KeyScale(int) { return 1.0f; }
  __device__ static float ValueScale(int) { return 1.0f; }
};

template <int kHeadDim>
struct Tile<Fp8, kHeadDim> {
  uint4 k[kTileTokens][kRowChunks<Fp8, kHeadDim>];
  uint4 v[kTileTokens][kRowChunks<Fp8, kHeadDim>];
  unsigned char k_scales[kTileTokens];
  unsigned char v_scales[kTileTokens];

  // ldmatrix takes two channels for one element, so that lane (g, t) gets
  // channels 4t to 4t + 3 of token g.  Even ones are columns 2t and 2t + 1 of
  // the fragment, odd ones columns 2t + 8 and 2t + 9.
  template <typename Use>
  __device__ void ForEachKeys(Use use) const {
    ForEachPair(
        k, [](uint32_t(&m)[4], const uint4* row) { Ldmatrix(m, row); },
        [&](int i, uint32_t low, uint32_t high) {
          const uint32_t fragment[4] = {WidenFp8Even(low), WidenFp8Even(high),
                                        WidenFp8Odd(low), WidenFp8Odd(high)};
          use(i, fragment);
        });
  }
  // Transposed, lane (g, t) gets channels 2g and 2g + 1 of tokens 2t and 2t +
  // 1.  Even channels are rows 0 to 7 of the fragment, odd ones rows 8 to 15.
  template <typename Use>
  __device__ void ForEachValues(Use use) const {
    ForEachPair(
        v, [](uint32_t(&m)[4], const uint4* row) { LdmatrixTrans(m, row); },
        [&](int i, uint32_t low, uint32_t high) {
          const uint32_t fragment[4] = {WidenFp8Even(low), WidenFp8Odd(low),
                                        WidenFp8Even(high), WidenFp8Odd(high)};
          use(i, fragment);
        });
  }
  __device__ static void LoadQuery(uint32_t (&b)[2], const Bf16* q, int i) {
    const uint2 four =
        *reinterpret_cast<const uint2*>(q + 16 * i + threadIdx.x % 4 * 4);
    b[0] = (four.x & 0xffff) | four.y << 16;
    b[1] = four.x >> 16 | (four.y & 0xffff0000u);
  }
  __device__ static int ChannelOf(int i, int r) {
    return 16 * i + r % 8 * 2 + r / 8;
  }

  __device__ float KeyScale(int token) const {
    return ScaleValue(k_scales[token]);
  }
  __device__ float ValueScale(int token) const {
    return ScaleValue(v_scales[token]);
  }

 private:
  // use(i, low, high) with the matrices of tokens 0 to 7 and 8 to 15 of chunk
  // i.  One load has two chunks; past the last it loads that again.
  template <typename Load, typename Use>
  __device__ static void ForEachPair(
      const uint4 (&rows)[kTileTokens][kRowChunks<Fp8, kHeadDim>], Load load,
      Use use) {
    constexpr int kChunks = kTokenChunks<Fp8, kHeadDim>;
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < kChunks; i += 2) {
      const int chunk =
          kChunks % 2 == 0 ? i + lane / 16 : min(i + lane / 16, kChunks - 1);
      uint32_t m[4];
      load(m, &rows[lane % 16][chunk]);
      use(i, m[0], m[1]);
      if (i + 1 < kChunks) use(i + 1, m[2], m[3]);
    }
  }
};

// Copies tiles to a warp's ring.  The pages of a tile are looked up, a token a
// lane, before it is its turn, so that the copy does not wait for them.
template <typename Element, int kHeadDim>
class TileCopier {
 public:
  // Tokens from `end` on become zeros, as what their page holds may be NaN; of
  // their scales any bits.
  __device__ TileCopier(const DevicePages& pages, const int32_t* page_table,
                        int kv_head, int end)
      : pages_(pages), table_(page_table), kv_head_(kv_head), end_(end) {}

  // The tile that starts at token `first` is the next.
  __device__ void LookUp(int first) {
    token_ = first + threadIdx.x % kTileTokens;
    if (token_ < end_) page_ = table_[token_ / pages_.page_tokens];
  }

  __device__ void Start(Tile<Element, kHeadDim>& tile) const {
    constexpr int kChunks = kTokenChunks<Element, kHeadDim>;
    constexpr int kCopies = kTileTokens * kChunks;
    const int64_t own =
        token_ < end_ ? KeyAt<Element>(pages_, page_, kv_head_, token_) : -1;
    for (int j = 0; j < (kCopies + 31) / 32; ++j) {
      const int i = threadIdx.x % 32 + 32 * j;
      const int token = i / kChunks, chunk = i % kChunks;
      const int64_t at = __shfl_sync(kAllLanes, own, token % kTileTokens);
      if (kCopies % 32 != 0 && i >= kCopies) continue;
      const bool valid = at >= 0;
      const unsigned char* k = Slab(pages_) + (valid ? at + chunk * 16 : 0);
      CpAsync16(&tile.k[token][chunk], k, valid);
      CpAsync16(&tile.v[token][chunk], k + ValueOffset<Element>(pages_), valid);
    }
    if constexpr (sizeof(Element) == 1) StartScales(tile);
  }

 private:
  // Four at once: they lie in one page.
  __device__ void StartScales(Tile<Element, kHeadDim>& tile) const {
    const int token = threadIdx.x % 32;
    if (token >= kTileTokens || token % 4 != 0) return;
    const bool valid = token_ < end_;
    const unsigned char* k =
        Slab(pages_) +
        (valid ? KeyScaleAt(pages_, page_, kv_head_, token_) : 0);
    CpAsync4(&tile.k_scales[token], k, valid);
    CpAsync4(&tile.v_scales[token], k + ValueScaleOffset(pages_), valid);
  }

  const DevicePages& pages_;
  const int32_t* const table_;
  const int kv_head_;
  const int end_;
  int token_ = 0;  // the lane's of the next tile
  int page_ = 0;   // its page
};

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_DECODE_TILE_CUH_
