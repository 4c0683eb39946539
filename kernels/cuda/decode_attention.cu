#include <cstdint>

#include "kernels/cuda/decode_tile.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/paged_kv.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/split.cuh"

// One block attends for one row and KV head, hence for all query heads of the
// head's group, over one split of the row's tokens.  Its warps take turns at
// tiles of 16 tokens and need each other at the end only: each has a ring of
// tiles, which cp.async fills.  Both products run on tensor cores with the
// tokens or the channels as the 16 rows and the group as 8 or 16 columns, which
// so waste little of them:
//
//   S^T [16 tokens, heads] = K [16, head_dim] Q^T
//   O^T [head_dim, heads] += V^T [head_dim, 16] P^T
//
// The softmax is the online one, in base 2: a warp keeps the maximum of each
// head's logits and the sums relative to it, and rescales when it grows.
namespace strata::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kRoundTokens = kWarps * kTileTokens;  // a tile for each warp
static_assert(kRoundTokens == Split::kRoundTokens);

// Tiles of a warp's ring.  With a head_dim of 128 an SM of Hopper has room for
// 3 blocks of 70 KB with bf16 and 4 of 56 KB with fp8, so at least 100 KB are
// under way: more than the 40 KB that HBM delivers within its latency.
template <typename Element, int kHeadDim>
constexpr int kStages = kHeadDim * sizeof(Element) > 128 ? 2 : 3;

template <typename Element, int kHeadDim, int kHeads>
struct Shared {
  union Warp {
    Tile<Element, kHeadDim> tiles[kStages<Element, kHeadDim>];
    float out[kHeads][kHeadDim];  // once the tiles are done
  };
  union {
    Warp warps[kWarps];
    float weights[kHeads]
                 [Split::kMaxSplits];  // of splits, when they are merged
  };
  float max[kWarps][kHeads];
  float sum[kWarps][kHeads];
  unsigned arrived;  // blocks before this one
};

// The running softmax of one warp.  Lane (g, t) holds heads 8n + 2t and 8n + 2t
// + 1 of each n; the maxima are those of all the warp's tokens, the sums of the
// lane's own.
template <typename Element, int kHeadDim, int kHeads>
class WarpSoftmax {
 public:
  using OneTile = Tile<Element, kHeadDim>;

  // `q`: the group's first query, [group, kHeadDim].
  __device__ WarpSoftmax(const Bf16* q, int group) {
    const int g = threadIdx.x % 32 / 4;
    for (int n = 0; n < kColumns; ++n) {
      max_[n][0] = max_[n][1] = -kInfinity;
      for (int i = 0; i < kSteps; ++i) {
        q_[n][i][0] = q_[n][i][1] = 0;
        if (8 * n + g >= group) continue;
        OneTile::LoadQuery(q_[n][i], q + (8 * n + g) * kHeadDim, i);
      }
    }
  }

  // Attends to the tokens of `tile` before the row's `num_tokens`; `first` is
  // the tile's first one, and before it.  `scale` is that of logits in base 2.
  __device__ void Add(const OneTile& tile, int first, int num_tokens,
                      float scale) {
    const int g = threadIdx.x % 32 / 4;
    float s[kColumns][4] = {};
    tile.ForEachKeys([&](int i, const uint32_t(&k)[4]) {
      for (int n = 0; n < kColumns; ++n) MmaBf16(s[n], k, q_[n][i]);
    });
    bool is_seen[2];  // the lane's tokens, g and g + 8
    float key_scale[2], value_scale[2];
    for (int j = 0; j < 2; ++j) {
      is_seen[j] = first + g + 8 * j < num_tokens;
      key_scale[j] = scale * tile.KeyScale(g + 8 * j);
      value_scale[j] = is_seen[j] ? tile.ValueScale(g + 8 * j) : 1.0f;
    }
    uint32_t p[kColumns][2];
    for (int n = 0; n < kColumns; ++n) {
      for (int j = 0; j < 4; ++j) {
        s[n][j] = is_seen[j / 2] ? s[n][j] * key_scale[j / 2] : -kInfinity;
      }
      Weigh(n, s[n]);
      for (int j = 0; j < 2; ++j) {
        p[n][j] = Transpose(PackBf16(s[n][2 * j] * value_scale[j],
                                     s[n][2 * j + 1] * value_scale[j]));
      }
    }
    tile.ForEachValues([&](int i, const uint32_t(&v)[4]) {
      for (int n = 0; n < kColumns; ++n) MmaBf16(out_[n][i], v, p[n]);
    });
  }

  // Leaves maxima, sums and unscaled outputs in the warp's part of `shared`.
  // REQUIRES: the warp is done with its tiles.
  __device__ void Store(Shared<Element, kHeadDim, kHeads>& shared) {
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
    for (int n = 0; n < kColumns; ++n) {
      for (int j = 0; j < 2; ++j) {
        const int head = 8 * n + threadIdx.x % 4 * 2 + j;
        for (int d = 4; d < 32; d *= 2) {
          sum_[n][j] += __shfl_xor_sync(kAllLanes, sum_[n][j], d);
        }
        if (g == 0) {
          shared.max[warp][head] = max_[n][j];
          shared.sum[warp][head] = sum_[n][j];
        }
        float* out = shared.warps[warp].out[head];
        for (int i = 0; i < kSteps; ++i) {
          out[OneTile::ChannelOf(i, g)] = out_[n][i][j];
          out[OneTile::ChannelOf(i, g + 8)] = out_[n][i][j + 2];
        }
      }
    }
  }

 private:
  static constexpr int kColumns = kHeads / 8;
  static constexpr int kSteps = kHeadDim / 16;

  // Turns logits of the heads of column `n` into weights, relative to the new
  // maxima, and everything before with them.  One token at least is not masked,
  // so that a maximum is finite from the first tile on.
  __device__ void Weigh(int n, float (&s)[4]) {
    for (int j = 0; j < 2; ++j) {
      float max = fmaxf(max_[n][j], fmaxf(s[j], s[j + 2]));
      for (int d = 4; d < 32; d *= 2) {
        max = fmaxf(max, __shfl_xor_sync(kAllLanes, max, d));
      }
      const float shrink = Exp2(max_[n][j] - max);
      max_[n][j] = max;
      s[j] = Exp2(s[j] - max);
      s[j + 2] = Exp2(s[j + 2] - max);
      sum_[n][j] = sum_[n][j] * shrink + s[j] + s[j + 2];
      for (int i = 0; i < kSteps; ++i) {
        out_[n][i][j] *= shrink;
        out_[n][i][j + 2] *= shrink;
      }
    }
  }

  uint32_t q_[kColumns][kSteps][2];  // Q^T as B fragments
  float out_[kColumns][kSteps][4] = {};
  float max_[kColumns][2];
  float sum_[kColumns][2] = {};
};

__device__ void StoreBf16(Bf16* at, float v) {
  *reinterpret_cast<__nv_bfloat16*>(at) = __float2bfloat16(v);
}

// Adds up what the warps left in `shared`: to `out` when this block has the
// whole row, else as its split in the scratch.  `first_head`: of the group, in
// all rows' heads.
template <typename Element, int kHeadDim, int kHeads>
__device__ void StoreBlock(const Shared<Element, kHeadDim, kHeads>& shared,
                           int group, int64_t first_head, const Split& split,
                           Bf16* out, const DecodeScratch& scratch) {
  for (int i = threadIdx.x; i < group * kHeadDim; i += kThreads) {
    const int head = i / kHeadDim, d = i % kHeadDim;
    float max = -kInfinity;
    for (int w = 0; w < kWarps; ++w) max = fmaxf(max, shared.max[w][head]);
    float sum = 0.0f, total = 0.0f;
    for (int w = 0; w < kWarps; ++w) {
      const float weight = Exp2(shared.max[w][head] - max);
      sum += weight * shared.sum[w][head];
      total += weight * shared.warps[w].out[head][d];
    }
    if (split.count == 1) {
      StoreBf16(out + first_head * kHeadDim + i, total / sum);
    } else {
      const int64_t at = (first_head + head) * scratch.max_splits + split.index;
      scratch.out[at * kHeadDim + d] = total / sum;
      if (d == 0) scratch.lse[at] = max + log2f(sum);
    }
  }
}

// Whether this block is the last one of its row and KV head to get here; if so,
// it sees what the others wrote to the scratch before.
__device__ bool IsLast(unsigned* arrived, int count, unsigned& shared_arrived) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) shared_arrived = atomicInc(arrived, count - 1);
  __syncthreads();
  if (shared_arrived != unsigned(count - 1)) return false;
  __threadfence();
  return true;
}

// Merges the row's splits of the group's heads into `out`.
template <typename Element, int kHeadDim, int kHeads>
__device__ void MergeSplits(Shared<Element, kHeadDim, kHeads>& shared,
                            int group, int64_t first_head, int splits,
                            Bf16* out, const DecodeScratch& scratch) {
  constexpr int kBatch = 8;  // loads under way at once
  for (int i = threadIdx.x; i < group * splits; i += kThreads) {
    shared.weights[i / splits][i % splits] =
        scratch
            .lse[(first_head + i / splits) * scratch.max_splits + i % splits];
  }
  __syncthreads();
  for (int i = threadIdx.x * 4; i < group * kHeadDim; i += kThreads * 4) {
    const float* lse = shared.weights[i / kHeadDim];
    const float* parts =
        scratch.out +
        (first_head + i / kHeadDim) * scratch.max_splits * kHeadDim +
        i % kHeadDim;
    float max = -kInfinity;
    for (int s = 0; s < splits; ++s) max = fmaxf(max, lse[s]);
    float sum = 0.0f, total[4] = {};
    for (int first = 0; first < splits; first += kBatch) {
      float4 batch[kBatch];
      for (int j = 0; j < kBatch; ++j) {
        const int64_t split = min(first + j, splits - 1);
        batch[j] = LoadEvictFirst(
            reinterpret_cast<const float4*>(parts + split * kHeadDim));
      }
      for (int j = 0; j < kBatch && first + j < splits; ++j) {
        const float weight = Exp2(lse[first + j] - max);
        sum += weight;
        total[0] += weight * batch[j].x;
        total[1] += weight * batch[j].y;
        total[2] += weight * batch[j].z;
        total[3] += weight * batch[j].w;
      }
    }
    for (int j = 0; j < 4; ++j) {
      StoreBf16(out + first_head * kHeadDim + i + j, total[j] / sum);
    }
  }
}

// Attends to the warp's tiles of the split.
template <typename Element, int kHeadDim, int kHeads>
__device__ void AttendSplit(
    const AttentionArgs& args, const int32_t* pages, const Split& split,
    WarpSoftmax<Element, kHeadDim, kHeads>& softmax,
    Tile<Element, kHeadDim> (&tiles)[kStages<Element, kHeadDim>]) {
  constexpr int kRing = kStages<Element, kHeadDim>;
  const float scale = args.scale * kLog2E;
  TileCopier<Element, kHeadDim> copier(args.pages, pages, blockIdx.x,
                                       split.end);
  const int first = split.begin + threadIdx.x / 32 * kTileTokens;
  int next = first;  // token of the tile to be copied
  int in = 0, out = 0;
  copier.LookUp(next);
  for (int token = first - (kRing - 1) * kRoundTokens; token < split.end;
       token += kRoundTokens) {
    if (next < split.end) {
      copier.Start(tiles[in]);
      next += kRoundTokens;
      copier.LookUp(next);
    }
    CpAsyncCommit();
    in = in + 1 == kRing ? 0 : in + 1;
    if (token < first) continue;  // the ring fills
    CpAsyncWait<kRing - 1>();     // for the tile of `token`
    __syncwarp();
    softmax.Add(tiles[out], token, split.end, scale);
    __syncwarp();  // the tile is free for the next, or for Store
    out = out + 1 == kRing ? 0 : out + 1;
  }
}

// Grid [kv_heads, rows, splits]; blocks past a row's last split do nothing.
template <typename Element, int kHeadDim, int kHeads>
__global__ void __launch_bounds__(kThreads)
    DecodeAttentionKernel(AttentionArgs args, DecodeScratch scratch) {
  auto& shared = DynamicShared<Shared<Element, kHeadDim, kHeads>>();
  const int row = blockIdx.y, split_index = blockIdx.z;
  const int group = args.q_heads / args.pages.kv_heads;
  const int64_t first_head = int64_t{row} * args.q_heads + blockIdx.x * group;
  GriddepWait();

  const int position = args.step.positions[row];
  if (position < 0) {
    if (split_index > 0) return;
    for (int i = threadIdx.x; i < group * kHeadDim; i += kThreads) {
      StoreBf16(args.out + first_head * kHeadDim + i, 0.0f);
    }
    return;
  }
  const Split split(split_index, position + 1, scratch.max_splits);
  if (split_index >= split.count) return;
  WarpSoftmax<Element, kHeadDim, kHeads> softmax(args.q + first_head * kHeadDim,
                                                 group);
  AttendSplit(args, PagesOf(args.step, row, args.layer), split, softmax,
              shared.warps[threadIdx.x / 32].tiles);
  GriddepLaunch();

  softmax.Store(shared);
  __syncthreads();
  StoreBlock(shared, group, first_head, split, args.out, scratch);
  if (split.count == 1) return;
  unsigned* arrived =
      scratch.arrived + int64_t{row} * args.pages.kv_heads + blockIdx.x;
  if (!IsLast(arrived, split.count, shared.arrived)) return;
  MergeSplits(shared, group, first_head, split.count, args.out, scratch);
}

template <typename Element, int kHeadDim, int kHeads>
cudaError_t LaunchDecode(const AttentionArgs& args,
                         const DecodeScratch& scratch, cudaStream_t stream) {
  return Launch<DecodeAttentionKernel<Element, kHeadDim, kHeads>>(
      {.grid = dim3(args.pages.kv_heads, args.step.rows,
                    min(scratch.max_splits, Split::kMaxSplits)),
       .block = dim3(kThreads),
       .smem_bytes = sizeof(Shared<Element, kHeadDim, kHeads>),
       .stream = stream,
       .overlap = true},
      args, scratch);
}

}  // namespace

cudaError_t DecodeAttention(const AttentionArgs& args,
                            const DecodeScratch& scratch, cudaStream_t stream) {
  const DevicePages& pages = args.pages;
  if (args.q_heads % pages.kv_heads != 0 ||
      args.q_heads > 16 * pages.kv_heads) {
    return cudaErrorInvalidValue;
  }
  if (args.step.rows == 0)
    return cudaSuccess;  // a grid of 0 blocks is an error
  return WithElement(pages.format, [&]<typename Element>() {
    return WithHeadDim(pages.head_dim, [&]<int kHeadDim>() {
      return args.q_heads <= 8 * pages.kv_heads
                 ? LaunchDecode<Element, kHeadDim, 8>(args, scratch, stream)
                 : LaunchDecode<Element, kHeadDim, 16>(args, scratch, stream);
    });
  });
}

}  // namespace strata::cuda
