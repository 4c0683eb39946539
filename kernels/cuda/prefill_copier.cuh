#ifndef KERNELS_CUDA_PREFILL_COPIER_CUH_
#define KERNELS_CUDA_PREFILL_COPIER_CUH_

#include <cstdint>

#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/paged_kv.cuh"
#include "kernels/cuda/ptx.cuh"

// How what a block of prefill attention works on gets to shared memory: bf16,
// also where the pages are fp8.
namespace strata::cuda {

inline constexpr int kPrefillThreads = 128;
inline constexpr int kPrefillTokens = 64;  // of a step

// What the products read.
template <int kHeadDim, int kHeads>
struct PrefillOperands {
  static constexpr int kRowChunks = cuda::kRowChunks<Bf16, kHeadDim>;
  uint4 q[kHeads][kPrefillTileRows][kRowChunks];
  uint4 k[kPrefillTokens][kRowChunks];
  uint4 v[kPrefillTokens][kRowChunks];
  int64_t key_at[2][kPrefillTokens];  // of a step's and the next one's tokens
};

template <typename Element, int kHeadDim, int kHeads>
struct PrefillShared : PrefillOperands<kHeadDim, kHeads> {};

template <int kHeadDim, int kHeads>
struct PrefillShared<Fp8, kHeadDim, kHeads>
    : PrefillOperands<kHeadDim, kHeads> {
  // Keys or values on their way: each thread widens what it has copied.
  uint4 raw[kPrefillTokens][kTokenChunks<Fp8, kHeadDim>];
  // Of a step's and the next one's keys and values.
  unsigned char scales[2][2][kPrefillTokens];
};

// What a block has to do.
struct PrefillTask {
  int first_row;       // of the step
  int num_rows;        // of the tile
  int first_position;  // of first_row
  int num_tokens;      // that the tile's last row sees
  int kv_head;
  int first_head;  // query head
  int num_heads;   // of the block
};

// Copies a block's operands.  Of a step's keys, and its values, StartK begins
// the copies; once the thread has waited for them, EndK makes what is there the
// operand, which the others see after a barrier.
template <typename Element, int kHeadDim, int kHeads>
class PrefillCopier {
 public:
  using Shared = PrefillShared<Element, kHeadDim, kHeads>;

  __device__ PrefillCopier(const AttentionArgs& args, const PrefillTask& task,
                           Shared& shared)
      : args_(args),
        task_(task),
        page_table_(PagesOf(args.step, task.first_row, args.layer)),
        shared_(shared) {}

  // Rows and heads that are not there become zeros.
  __device__ void StartQ() const {
    constexpr int kChunks = kTokenChunks<Bf16, kHeadDim>;
    constexpr int kRows = kPrefillTileRows;
    for (int i = threadIdx.x; i < kHeads * kRows * kChunks;
         i += kPrefillThreads) {
      const int head = i / kChunks / kRows, row = i / kChunks % kRows;
      const bool valid = row < task_.num_rows && head < task_.num_heads;
      const int64_t at = int64_t{task_.first_row + row} * args_.q_heads +
                         task_.first_head + head;
      CpAsync16(&shared_.q[head][row][i % kChunks],
                args_.q + (valid ? at * kHeadDim + i % kChunks * 8 : 0), valid);
    }
  }

  // Looks up the page of the thread's token of the step that starts at token
  // `first`, which takes a while.
  __device__ void LookUp(int first) {
    const int token = first + threadIdx.x;
    if (threadIdx.x < kPrefillTokens && token < task_.num_tokens) {
      page_ = page_table_[token / args_.pages.page_tokens];
    }
  }
  // Tells the others what was found: they see it after a barrier.  Starts to
  // copy the scales, to be committed with the keys.
  __device__ void Publish(int first) const {
    if (threadIdx.x >= kPrefillTokens) return;
    const int token = first + threadIdx.x;
    const bool valid = token < task_.num_tokens;
    KeysOf(first)[threadIdx.x] =
        valid ? KeyAt<Element>(args_.pages, page_, task_.kv_head, token) : -1;
    // Four at once: they lie in one page.
    if (kIsFp8 && threadIdx.x % 4 == 0 && first < task_.num_tokens) {
      StartScales(first, token, valid);
    }
  }

  // Tokens that no row sees become zeros, as what their page holds may be NaN.
  __device__ void StartK(int first) const { Start(first, 0, shared_.k); }
  __device__ void StartV(int first) const {
    Start(first, ValueOffset<Element>(args_.pages), shared_.v);
  }

  __device__ void EndK(int first) const {
    if constexpr (kIsFp8) {
      __syncthreads();  // the scales are there, those of the values too
      Widen(first, 0, shared_.k);
    }
  }
  __device__ void EndV(int first) const {
    if constexpr (kIsFp8) Widen(first, 1, shared_.v);
  }

 private:
  static constexpr bool kIsFp8 = sizeof(Element) == 1;
  static constexpr int kChunks = kTokenChunks<Element, kHeadDim>;
  static constexpr int kCopies = kPrefillTokens * kChunks;
  using Rows = uint4[kPrefillTokens][cuda::kRowChunks<Bf16, kHeadDim>];

  __device__ int64_t (&KeysOf(int first) const)[kPrefillTokens] {
    return shared_.key_at[first / kPrefillTokens % 2];
  }

  __device__ void StartScales(int first, int token, bool valid) const {
    if constexpr (kIsFp8) {
      auto& scales = shared_.scales[first / kPrefillTokens % 2];
      const unsigned char* k =
          Slab(args_.pages) +
          (valid ? KeyScaleAt(args_.pages, page_, task_.kv_head, token) : 0);
      CpAsync4(&scales[0][threadIdx.x], k, valid);
      CpAsync4(&scales[1][threadIdx.x], k + ValueScaleOffset(args_.pages),
               valid);
    }
  }

  __device__ void Start(int first, int64_t offset, Rows& rows) const {
#pragma unroll 2  // registers are scarce
    for (int i = threadIdx.x; i < kCopies; i += kPrefillThreads) {
      const int token = i / kChunks, chunk = i % kChunks;
      const int64_t at = KeysOf(first)[token];
      const bool valid = at >= 0;
      uint4* to = &rows[token][chunk];
      if constexpr (kIsFp8) to = &shared_.raw[token][chunk];
      CpAsync16(to, Slab(args_.pages) + (valid ? at + offset + chunk * 16 : 0),
                valid);
    }
  }

  // What this thread has copied, times the scales.  `which`: 0 keys, 1 values.
  __device__ void Widen(int first, int which, Rows& rows) const {
    if constexpr (kIsFp8) {
#pragma unroll 2
      for (int i = threadIdx.x; i < kCopies; i += kPrefillThreads) {
        const int token = i / kChunks, chunk = i % kChunks;
        // What lies behind the last token's scale may be anything.
        const uint32_t scale =
            first + token < task_.num_tokens
                ? shared_.scales[first / kPrefillTokens % 2][which][token]
                : 0;
        const uint4 raw = shared_.raw[token][chunk];
        rows[token][2 * chunk] = Widen8(raw.x, raw.y, scale);
        rows[token][2 * chunk + 1] = Widen8(raw.z, raw.w, scale);
      }
    }
  }

  __device__ static uint4 Widen8(uint32_t first, uint32_t second,
                                 uint32_t scale) {
    const uint2 low = Widen4(first, scale), high = Widen4(second, scale);
    return {low.x, low.y, high.x, high.y};
  }
  __device__ static uint2 Widen4(uint32_t four, uint32_t scale) {
    const uint32_t scales = scale * 0x00800080u;  // two bf16
    const uint32_t even = MultiplyBf16(WidenFp8Even(four), scales);
    const uint32_t odd = MultiplyBf16(WidenFp8Odd(four), scales);
    return {(even & 0xffff) | odd << 16, even >> 16 | (odd & 0xffff0000u)};
  }

  const AttentionArgs& args_;
  const PrefillTask& task_;
  const int32_t* const page_table_;
  Shared& shared_;
  int page_ = 0;
};

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_PREFILL_COPIER_CUH_
