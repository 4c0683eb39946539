#include <cstdint>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/paged_kv.cuh"
#include "kernels/cuda/prefill_copier.cuh"
#include "kernels/cuda/ptx.cuh"

// FlashAttention-2 over pages.  One block attends for the rows of one tile and
// one or two query heads of a KV head; of these each warp has 16 rows.  Two
// heads share what a warp reads of keys and values from shared memory, whose
// bandwidth binds otherwise.  Per 64 tokens
//
//   S [16 rows, 64 tokens] = Q [16, head_dim] K^T
//   O [16 rows, head_dim] += P [16, 64] V,  P = 2^(S - running maximum)
//
// where P goes from the accumulators of one product to the operands of the
// other in registers.  While a product runs, cp.async fetches what the next
// needs: V during Q K^T, the next K during P V.
namespace strata::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
static_assert(kThreads == kPrefillThreads);
constexpr int kWarpRows = 16;
constexpr int kTokens = kPrefillTokens;
static_assert(kPrefillTileRows == kWarps * kWarpRows);

// The running softmax of a warp's 16 rows in each of kHeads heads.  Lane (g, t)
// has of rows g and g + 8 the tokens or channels 8n + 2t and 8n + 2t + 1; the
// maxima are those of the row, the sums of the lane's own tokens.
template <int kHeadDim, int kHeads>
class WarpRows {
 public:
  // `scale` is that of logits in base 2, positive.
  __device__ WarpRows(const PrefillTask& task, float scale)
      : scale_(scale), first_position_(task.first_position + FirstRow()) {
#pragma unroll
    for (int h = 0; h < kHeads; ++h) max_[h][0] = max_[h][1] = -kInfinity;
  }

  __device__ static int FirstRow() { return threadIdx.x / 32 * kWarpRows; }

  // The logits of 64 tokens, unscaled.
  __device__ void MultiplyKeys(
      const PrefillOperands<kHeadDim, kHeads>& shared) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
#pragma unroll
      for (int n = 0; n < kTokens / 8; ++n) {
#pragma unroll
        for (int j = 0; j < 4; ++j) s_[h][n][j] = 0.0f;
      }
    }
#pragma unroll
    for (int c = 0; c < kHeadDim / 16; ++c) {
      uint32_t q[kHeads][4];
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        Ldmatrix(q[h], &shared.q[h][FirstRow() + lane % 16][2 * c + lane / 16]);
      }
#pragma unroll
      for (int n = 0; n < kTokens / 16; ++n) {
        uint32_t k[4];
        Ldmatrix(
            k,
            &shared.k[16 * n + lane % 8 + lane / 16 * 8][2 * c + lane / 8 % 2]);
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          MmaBf16(s_[h][2 * n], q[h], {k[0], k[1]});
          MmaBf16(s_[h][2 * n + 1], q[h], {k[2], k[3]});
        }
      }
    }
  }

  // Makes them weights relative to the new maxima, and all before with them.
  // `first`: of the 64 tokens, 0 in the first call, so that every row sees one
  // at least by then and its maximum is finite.
  __device__ void Weigh(int first) {
    if (first + kTokens > first_position_ + 1) Mask(first);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float max = max_[h][i];
#pragma unroll
        for (int n = 0; n < kTokens / 8; ++n) {
          max = fmaxf(max, fmaxf(s_[h][n][2 * i], s_[h][n][2 * i + 1]));
        }
#pragma unroll
        for (int d = 1; d < 4; d *= 2) {
          max = fmaxf(max, __shfl_xor_sync(kAllLanes, max, d));
        }
        const float shrink = Exp2((max_[h][i] - max) * scale_);
        max_[h][i] = max;
        sum_[h][i] *= shrink;
#pragma unroll
        for (int n = 0; n < kHeadDim / 8; ++n) {
          out_[h][n][2 * i] *= shrink;
          out_[h][n][2 * i + 1] *= shrink;
        }
#pragma unroll
        for (int n = 0; n < kTokens / 8; ++n) {
#pragma unroll
          for (int j = 2 * i; j < 2 * i + 2; ++j) {
            s_[h][n][j] = Exp2(s_[h][n][j] * scale_ - max * scale_);
            sum_[h][i] += s_[h][n][j];
          }
        }
      }
    }
  }

  __device__ void MultiplyValues(
      const PrefillOperands<kHeadDim, kHeads>& shared) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < kTokens / 16; ++m) {
      uint32_t p[kHeads][4];
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float(&s)[4] = s_[h][2 * m + j / 2];
          p[h][j] = PackBf16(s[j % 2 * 2], s[j % 2 * 2 + 1]);
        }
      }
#pragma unroll
      for (int n = 0; n < kHeadDim / 16; ++n) {
        uint32_t v[4];
        LdmatrixTrans(v, &shared.v[16 * m + lane % 16][2 * n + lane / 16]);
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          MmaBf16(out_[h][2 * n], p[h], {v[0], v[1]});
          MmaBf16(out_[h][2 * n + 1], p[h], {v[2], v[3]});
        }
      }
    }
  }

  __device__ void Store(const AttentionArgs& args, const PrefillTask& task) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int d = 1; d < 4; d *= 2) {
          sum_[h][i] += __shfl_xor_sync(kAllLanes, sum_[h][i], d);
        }
        const int row = FirstRow() + g + 8 * i;
        if (row >= task.num_rows || h >= task.num_heads) continue;
        const float weight = 1.0f / sum_[h][i];
        Bf16* out = args.out + (int64_t{task.first_row + row} * args.q_heads +
                                task.first_head + h) *
                                   kHeadDim;
#pragma unroll
        for (int n = 0; n < kHeadDim / 8; ++n) {
          *reinterpret_cast<uint32_t*>(out + 8 * n + 2 * t) = PackBf16(
              out_[h][n][2 * i] * weight, out_[h][n][2 * i + 1] * weight);
        }
      }
    }
  }

 private:
  __device__ void Mask(int first) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    // Tokens of the step that the lane's first row sees, from its own ones on.
    const int count = first_position_ + g + 1 - first - 2 * t;
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
#pragma unroll
      for (int n = 0; n < kTokens / 8; ++n) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int token = 8 * (n - j / 2) + j % 2;
          if (token >= count) s_[h][n][j] = -kInfinity;
        }
      }
    }
  }

  const float scale_;
  const int first_position_;         // of the warp's first row
  float s_[kHeads][kTokens / 8][4];  // logits, then weights
  float out_[kHeads][kHeadDim / 8][4] = {};
  float max_[kHeads][2];
  float sum_[kHeads][2] = {};
};

// Of block [x, y]: x counts the blocks of a KV head, then the KV heads.  Late
// tiles of a chunk have the most to do, so they go first.
template <int kHeads>
__device__ PrefillTask MakeTask(const AttentionArgs& args,
                                const PrefillTile* tiles) {
  const PrefillTile tile = tiles[gridDim.y - 1 - blockIdx.y];
  const int group = args.q_heads / args.pages.kv_heads;
  const int blocks = (group + kHeads - 1) / kHeads;
  const int kv_head = blockIdx.x / blocks;
  const int head = blockIdx.x % blocks * kHeads;
  const int position = args.step.positions[tile.first_row];
  return {.first_row = tile.first_row,
          .num_rows = tile.num_rows,
          .first_position = position,
          .num_tokens = position + tile.num_rows,
          .kv_head = kv_head,
          .first_head = kv_head * group + head,
          .num_heads = min(kHeads, group - head)};
}

template <int kHeadDim>
__device__ void StoreZeros(const AttentionArgs& args, const PrefillTask& task) {
  const int count = task.num_heads * kHeadDim / 2;  // of a row
  for (int i = threadIdx.x; i < task.num_rows * count; i += kThreads) {
    const int64_t row = task.first_row + i / count;
    reinterpret_cast<uint32_t*>(args.out +
                                (row * args.q_heads + task.first_head) *
                                    kHeadDim)[i % count] = 0;
  }
}

// Grid [kv_heads * blocks of a group, tiles].
template <typename Element, int kHeadDim, int kHeads>
__global__ void __launch_bounds__(kThreads, 2)
    PrefillAttentionKernel(AttentionArgs args, const PrefillTile* tiles) {
  auto& shared = DynamicShared<PrefillShared<Element, kHeadDim, kHeads>>();
  using Rows = WarpRows<kHeadDim, kHeads>;
  GriddepWait();

  const PrefillTask task = MakeTask<kHeads>(args, tiles);
  if (task.first_position < 0) {
    StoreZeros<kHeadDim>(args, task);
    return;
  }
  PrefillCopier<Element, kHeadDim, kHeads> copier(args, task, shared);
  Rows rows(task, args.scale * kLog2E);
  // Tokens that the warp's rows see; none if it has no rows.
  const int warp_tokens =
      Rows::FirstRow() < task.num_rows
          ? task.first_position +
                min(Rows::FirstRow() + kWarpRows, task.num_rows)
          : 0;
  copier.LookUp(0);
  copier.Publish(0);
  __syncthreads();
  copier.StartQ();
  copier.StartK(0);
  CpAsyncCommit();
  for (int first = 0; first < task.num_tokens; first += kTokens) {
    const int next = first + kTokens;
    CpAsyncWait<0>();
    copier.EndK(first);
    __syncthreads();  // K is there, V is free
    copier.StartV(first);
    CpAsyncCommit();
    copier.LookUp(next);
    if (first < warp_tokens) rows.MultiplyKeys(shared);
    copier.Publish(next);
    CpAsyncWait<0>();
    copier.EndV(first);
    __syncthreads();  // V is there, K is free
    if (next < task.num_tokens) copier.StartK(next);
    CpAsyncCommit();
    if (first >= warp_tokens) continue;
    rows.Weigh(first);
    rows.MultiplyValues(shared);
  }
  GriddepLaunch();
  if (warp_tokens > 0) rows.Store(args, task);
}

template <typename Element, int kHeadDim, int kHeads>
cudaError_t LaunchPrefill(const AttentionArgs& args, const PrefillTile* tiles,
                          int num_tiles, cudaStream_t stream) {
  const int group = args.q_heads / args.pages.kv_heads;
  const int blocks = (group + kHeads - 1) / kHeads;
  return Launch<PrefillAttentionKernel<Element, kHeadDim, kHeads>>(
      {.grid = dim3(args.pages.kv_heads * blocks, num_tiles),
       .block = dim3(kThreads),
       .smem_bytes = sizeof(PrefillShared<Element, kHeadDim, kHeads>),
       .stream = stream,
       .overlap = true},
      args, tiles);
}

}  // namespace

cudaError_t PrefillAttention(const AttentionArgs& args,
                             const PrefillTile* tiles, int num_tiles,
                             cudaStream_t stream) {
  const DevicePages& pages = args.pages;
  if (args.q_heads % pages.kv_heads != 0) return cudaErrorInvalidValue;
  if (num_tiles == 0) return cudaSuccess;  // a grid of 0 blocks is an error
  return WithElement(pages.format, [&]<typename Element>() {
    return WithHeadDim(pages.head_dim, [&]<int kHeadDim>() {
      // The accumulators of two heads of 256 would not fit the registers.
      if constexpr (kHeadDim <= 128) {
        if (args.q_heads > pages.kv_heads) {
          return LaunchPrefill<Element, kHeadDim, 2>(args, tiles, num_tiles,
                                                     stream);
        }
      }
      return LaunchPrefill<Element, kHeadDim, 1>(args, tiles, num_tiles,
                                                 stream);
    });
  });
}

}  // namespace strata::cuda
