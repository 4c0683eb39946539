#ifndef KERNELS_CUDA_OPS_H_
#define KERNELS_CUDA_OPS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/cuda/kv_page.h"
#include "kernels/cuda/weight_format.h"
#include "kernels/dtype.h"

// The operations of kernels/ops.h on device memory, as
// kernels/cuda/cuda_backend composes them.  Each enqueues on `stream` and
// returns how the launch went; the run's own errors come at a later sync.  All
// pointers are to device memory and aligned to 16 bytes.  Nothing depends on
// values that the host must know first, so that a step captured once serves
// every mix of strategies (facts: DESIGN 4).
//
// Every operation gives the same bits for a row whatever other rows there are,
// as long as the number of rows falls into the same regime (kMaxGemvRows,
// kMaxSmallRows).
namespace strata::cuda {

inline constexpr int kMaxGemvRows = 4;
inline constexpr int kMaxSmallRows = 16;

// Weights [rows, cols].
struct DeviceMatrix {
  WeightFormat format = WeightFormat::kBf16;
  const void* data = nullptr;         // [rows, cols] by the format
  const F16* block_scales = nullptr;  // [rows, cols / 32] of Q8_0, Q4_0, or
                                      // null
  const float* row_scales = nullptr;  // [rows] of fp8, or null
  int rows = 0;                       // outputs
  int cols = 0;                       // inputs, a multiple of 16; of 32 where
                                      // blocks have scales
};

struct DeviceSampledToken;

// A step's rows, in device memory at addresses that stay from step to step.
struct DeviceStep {
  int rows = 0;                            // of the launch; some may be padding
  const int32_t* positions = nullptr;      // [rows], -1: padding
  const int32_t* strategies = nullptr;     // [rows], row of slot_of
  const int64_t* tables = nullptr;         // [rows], first element of its page
                                           // table in `pages`
  const int32_t* table_strides = nullptr;  // [rows], blocks from slot to slot
  const int32_t* slot_of = nullptr;        // [strategies, layers]
  const int32_t* pages = nullptr;          // page tables, [slot][block] each
  int layers = 0;
};

// The slab: [pages, 2 (K, V), kv_heads, page_tokens, head_dim], page_bytes from
// page to page.
struct DevicePages {
  void* data = nullptr;
  int kv_heads = 0;
  int page_tokens = 0;  // a power of two in [4, 128]
  int head_dim = 0;     // a multiple of 16, at most 256
  KvFormat format = KvFormat::kBf16;
  int64_t page_bytes = 0;  // KvPageBytes
};

// x[r] = row tokens[r] of table, as f32; a negative token gives zeros.  Where
// sampled[r] >= 0, the token is that of results[sampled[r]].
struct EmbedArgs {
  DeviceMatrix table;
  const int32_t* tokens = nullptr;              // [rows]
  const int32_t* sampled = nullptr;             // [rows]
  const DeviceSampledToken* results = nullptr;  // of the step before
  int rows = 0;
  float* x = nullptr;  // [rows, table.cols]
};
cudaError_t Embed(const EmbedArgs& args, cudaStream_t stream);

// y[i] = x[row_ids[i]]
struct GatherArgs {
  const float* x = nullptr;          // [*, dim]
  const int32_t* row_ids = nullptr;  // [rows]; -1: zeros
  int rows = 0;
  int dim = 0;         // a multiple of 4
  float* y = nullptr;  // [rows, dim]
};
cudaError_t Gather(const GatherArgs& args, cudaStream_t stream);

// y[i, c] = 0 but for columns begin <= c < end, which stay.
struct ClearArgs {
  float* y = nullptr;  // [rows, cols]
  int rows = 0;
  int cols = 0;
  int begin = 0;
  int end = 0;
};
cudaError_t Clear(const ClearArgs& args, cudaStream_t stream);

// y[i] = norm(x[row_ids[i]]) as bf16, the RmsNorm of kernels/ops.h.
struct NormArgs {
  const float* x = nullptr;          // [*, dim]
  const int32_t* row_ids = nullptr;  // [rows], -1: zeros; null: 0, 1, 2, ...
  int rows = 0;
  int dim = 0;                    // a multiple of 8
  const float* weight = nullptr;  // [dim]
  float eps = 0.0f;
  Bf16* y = nullptr;  // [rows, dim]
};
cudaError_t Norm(const NormArgs& args, cudaStream_t stream);

// Matrix products of up to three matrices over the same input, with what comes
// before and after fused where there are few rows:
//
//   in[r]  = x[r], or norm(u[row_ids[r]]) rounded to bf16
//   out[r] = W0 in[r] + b0 | W1 in[r] + b1 | W2 in[r] + b2      (side by side)
//
// and then, by `then`:
//   kStore   y[r] = out[r]
//   kAdd     y[r] += out[r]
//   kSwiGlu  z[r] = silu(out0[r]) * out1[r] as bf16, silu(v) = v / (1 + e^-v),
//   of
//            W0 and W1 of one format and size
//
// Up to kMaxGemvRows rows the weights stream once through plain arithmetic, in
// the kernel that norms.  Above, the norm is a kernel of its own, over
// `scratch`, and tensor cores multiply: up to kMaxSmallRows with the weights
// streamed once, beyond in a tiled GEMM.
struct ProductArgs {
  const Bf16* x = nullptr;           // [rows, cols]; or null, then
  const float* u = nullptr;          // [*, cols]
  const int32_t* row_ids = nullptr;  // [rows], -1: zeros; null: 0, 1, 2, ...
  const float* norm = nullptr;       // [cols]
  float eps = 0.0f;
  int rows = 0;

  DeviceMatrix w[3] = {};  // those with rows > 0; equal cols
  const float* bias[3] = {nullptr, nullptr, nullptr};  // [w[i].rows] or null
  // Matrices 1 and 2 are computed only if any[0] != 0; their y is not written
  // else.  null: always.
  const int32_t* any = nullptr;

  enum class Then { kStore, kAdd, kSwiGlu };
  Then then = Then::kStore;
  float* y = nullptr;  // [rows, sum of w[i].rows]
  int y_stride = 0;    // floats from row to row of y; 0: none lie between
  Bf16* z = nullptr;   // [rows, w[0].rows], of kSwiGlu

  void* scratch = nullptr;  // ProductScratchBytes(args), aligned to 256
};
cudaError_t Product(const ProductArgs& args, cudaStream_t stream);
int64_t ProductScratchBytes(const ProductArgs& args);
// The norm that Product begins with above kMaxGemvRows rows: args->x is given
// afterwards.
cudaError_t NormInput(ProductArgs* args, cudaStream_t stream);

// z[r] = silu(gate) * up as bf16, of y[r] = gate | up: kSwiGlu's end, for two
// matrices of different formats.
struct SwiGluArgs {
  const float* y = nullptr;  // [rows, 2 cols]
  int rows = 0;
  int cols = 0;       // a multiple of 8
  Bf16* z = nullptr;  // [rows, cols]
};
cudaError_t SwiGlu(const SwiGluArgs& args, cudaStream_t stream);

// What follows the product of Q, K and V, on each head: norm, rotation, and K
// and V into the cache where the row's strategy has the layer as a leader.
//
//   q[i]  = rope(q_norm(q_in[i]))                       every row i but padding
//   pages <- rope(k_norm(K)), V of kv_in[kv_rows[i]]    rows with kv_rows[i] >=
//   0
//
// The row's place in the cache: slot_of[strategy, layer].
struct RopeAppendArgs {
  const float* q_in = nullptr;  // [rows, q_heads head_dim], from row to row
  int64_t q_stride = 0;         // floats
  // [*, 2 (K, V), kv_heads head_dim], of the rows that kv_rows names.
  const float* kv_in = nullptr;
  int64_t kv_stride = 0;
  const int32_t* kv_rows = nullptr;  // [rows]; -1: nothing is appended
  DeviceStep step;
  DevicePages pages;
  int layer = 0;
  int q_heads = 0;
  const float* q_norm = nullptr;  // [head_dim] or null
  const float* k_norm = nullptr;  // [head_dim] or null
  float eps = 0.0f;
  const float* inv_freq = nullptr;  // [head_dim / 2]
  Bf16* q = nullptr;                // [rows, q_heads, head_dim]
};
cudaError_t RopeAppend(const RopeAppendArgs& args, cudaStream_t stream);

// Attention of each row over its sequence's cache up to its position, as
// AttentionArgs of kernels/ops.h.  Padding rows get zeros.
struct AttentionArgs {
  const Bf16* q = nullptr;  // [rows, q_heads, head_dim]
  DeviceStep step;
  DevicePages pages;
  int layer = 0;
  int q_heads = 0;  // a multiple of kv_heads, at most 16 times
  float scale = 0.0f;
  Bf16* out = nullptr;  // [rows, q_heads, head_dim]
};

// For single rows: each one's positions are split among up to max_splits
// blocks; the last one to end merges them.
struct DecodeScratch {
  float* out = nullptr;         // [rows, q_heads, max_splits, head_dim]
  float* lse = nullptr;         // [rows, q_heads, max_splits], log2 of the sum
  uint32_t* arrived = nullptr;  // [rows, kv_heads], zeros before and after
  int max_splits = 1;
};
cudaError_t DecodeAttention(const AttentionArgs& args,
                            const DecodeScratch& scratch, cudaStream_t stream);

// For chunks of consecutive positions: 64 rows of a chunk share what they read.
struct PrefillTile {
  int32_t first_row;  // of the step
  int32_t num_rows;   // at most kPrefillTileRows, of one chunk
};
inline constexpr int kPrefillTileRows = 64;
cudaError_t PrefillAttention(const AttentionArgs& args,
                             const PrefillTile* tiles, int num_tiles,
                             cudaStream_t stream);

// How a row of logits becomes a token: SampleRow of kernels/sampling.h, its
// lists in device memory.
struct DeviceTokenCount {
  int32_t token;
  int32_t generated;
};
struct DeviceTokenBias {
  int32_t token;
  float bias;
};
struct DeviceSampleRow {
  float temperature, top_p, min_p;
  int32_t top_k;
  float repetition_penalty, presence_penalty, frequency_penalty;
  uint64_t seed;
  uint32_t index, position;
  int64_t history, bias, banned, allowed;  // first element in the lists below
  int32_t num_history, num_bias, num_banned, num_allowed;
  int32_t forced_token;
  int32_t wants_logprobs;
  int32_t num_top;
};
struct DeviceSampledToken {
  int32_t token;  // 0 where not finite
  float logprob;
  int32_t num_top;
  int32_t finite;
  int32_t top_tokens[20];
  float top_logprobs[20];
};
// The CPU backend's choice wherever the rounding of sums and weights does not
// decide (Philox and the order of steps are the same).  A row's token depends
// on its logits and its DeviceSampleRow alone. REQUIRES: the tokens of a row's
// history are distinct, and those of its bias.
struct SampleArgs {
  const float* logits = nullptr;  // [rows, vocab]
  int vocab = 0;                  // at most 2^20
  int rows = 0;
  const DeviceSampleRow* samples = nullptr;   // [rows]
  const DeviceTokenCount* history = nullptr;  // the lists of all rows
  const DeviceTokenBias* bias = nullptr;
  const int32_t* tokens = nullptr;    // banned and allowed ones
  DeviceSampledToken* out = nullptr;  // [rows]
  void* scratch = nullptr;  // SampleScratchBytes(rows, vocab), aligned to 256
};
cudaError_t Sample(const SampleArgs& args, cudaStream_t stream);
int64_t SampleScratchBytes(int rows, int vocab);

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_OPS_H_
