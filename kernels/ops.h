#ifndef KERNELS_OPS_H_
#define KERNELS_OPS_H_

#include <cstdint>
#include <span>

#include "kernels/bf16.h"
#include "kernels/dtype.h"
#include "kernels/sampling.h"
#include "kernels/step.h"

// The operations of a forward pass.  One Args struct is the contract of one
// operation; a backend implements each.  Activations are row-major f32. Lengths
// count elements.
namespace strata {

// Weights in a backend's own packed layout: [rows (outputs), cols (inputs)].
class Matrix {
 public:
  virtual ~Matrix() = default;
  virtual int64_t rows() const = 0;
  virtual int64_t cols() const = 0;
  virtual int64_t num_bytes() const = 0;
};

// norm(x)[c] = x[c] / sqrt(mean over c of x[c]^2 + eps) * weight[c]
struct RmsNorm {
  const float* weight = nullptr;  // [dim]; null: x itself
  float eps = 0.0f;               // in units of x squared
};

// x[r] = row tokens[r] of table.  Where sampled[r] >= 0, the token is that which
// the step submitted before has sampled as its sampled[r]-th, and which the host
// need not know yet.
struct EmbedArgs {
  WeightView table;                 // [vocab, dim], in backend memory
  std::span<const int32_t> tokens;  // [rows], each in [0, vocab)
  // [rows], or empty: no row; not empty only where max_in_flight() > 1.
  std::span<const int32_t> sampled = {};
  float* x = nullptr;  // [rows, dim]
};

// The input side of attention in `layer`, for rows of x given by number:
//
//   q[i] = rope(q_norm(Wq norm(x[q_rows[i]]) + bq)),  i < q_rows.size()
//
// and into the cache, the layer's own slot, at the position of kv_rows[j]:
//
//   K = rope(k_norm(Wk norm(x[kv_rows[j]]) + bk))
//   V = Wv norm(x[kv_rows[j]]) + bv
//
// q_norm and k_norm act on each head.  rope rotates halves: with i < head_dim /
// 2 and the angle a = position * inv_freq[i],  (u, w) = (v[i], v[i + head_dim /
// 2]) become (u cos a - w sin a, w cos a + u sin a).  kv_rows are the rows
// whose strategy has `layer` as a leader; their slot is step.SlotOf(chunk,
// layer).  Both lists rise.  Positions are those of `step`.
struct QkvArgs {
  int layer = 0;
  const float* x = nullptr;  // [step.rows(), dim]
  const Step* step = nullptr;
  std::span<const int32_t> q_rows;
  std::span<const int32_t> kv_rows;
  RmsNorm norm;                     // over dim
  const Matrix* wq = nullptr;       // [q_heads * head_dim, dim]
  const Matrix* wk = nullptr;       // [kv_heads * head_dim, dim]
  const Matrix* wv = nullptr;       // [kv_heads * head_dim, dim]
  const float* bq = nullptr;        // [q_heads * head_dim] or null
  const float* bk = nullptr;        // [kv_heads * head_dim] or null
  const float* bv = nullptr;        // [kv_heads * head_dim] or null
  RmsNorm q_norm;                   // over head_dim
  RmsNorm k_norm;                   // over head_dim
  const float* inv_freq = nullptr;  // [head_dim / 2], radians per position
  float* q = nullptr;               // [q_rows.size(), q_heads * head_dim]
};

// Causal attention of the rows of `step` over the cache that `layer` reads:
//
//   out[r,h] = sum over t <= position[r] of p[t] * V[t,g]
//   p = softmax over t of scale * (q[r,h] . K[t,g])
//   g = h / (q_heads / kv_heads)
//
// K and V lie in slot step.SlotOf(chunk, layer).
struct AttentionArgs {
  int layer = 0;
  const Step* step = nullptr;
  const float* q = nullptr;  // [step.rows(), q_heads * head_dim]
  float* out = nullptr;      // [step.rows(), q_heads * head_dim]
  int q_heads = 0;           // a multiple of the cache's kv_heads
  float scale = 0.0f;        // 1 / sqrt(head_dim) as a rule
};

// y[r] = W x[r], added to y[r] where `accumulate` (a residual).
struct LinearArgs {
  const float* x = nullptr;  // [rows, w->cols()]
  int rows = 0;
  const Matrix* w = nullptr;
  const float* bias = nullptr;  // [w->rows()] or null
  float* y = nullptr;           // [rows, w->rows()]
  bool accumulate = false;
};

// y[r] = silu(Wgate norm(x[r])) * (Wup norm(x[r])),  silu(v) = v / (1 +
// exp(-v))
struct GatedMlpArgs {
  const float* x = nullptr;  // [rows, dim]
  int rows = 0;
  RmsNorm norm;
  const Matrix* gate = nullptr;  // [hidden, dim]
  const Matrix* up = nullptr;    // [hidden, dim]
  float* y = nullptr;            // [rows, hidden]
};

// y[i] = x[row_ids[i]].  y and x do not overlap.
struct GatherArgs {
  const float* x = nullptr;  // [*, dim]
  std::span<const int32_t> row_ids;
  int dim = 0;
  float* y = nullptr;  // [row_ids.size(), dim]
};

// logits[i, first_token + t] = (W norm(x[row_ids[i]]))[t], 0 for other tokens
struct HeadArgs {
  const float* x = nullptr;  // [*, dim]
  std::span<const int32_t> row_ids;
  RmsNorm norm;
  const Matrix* w = nullptr;  // [tokens, dim]
  float* logits = nullptr;    // [row_ids.size(), vocab]
  int vocab = 0;              // 0: w has a row for each token
  int first_token = 0;        // a multiple of 4
};

// out[i] = the token of logits[i] under rows[i].  Changes the logits.
struct SampleArgs {
  float* logits = nullptr;  // [rows.size(), vocab]
  int vocab = 0;
  std::span<const SampleRow> rows;
  SampledToken* out = nullptr;  // [rows.size()], host memory
};

// x = the sum over all ranks of their x, the same bits on each.  Every rank of
// a ParallelBackend runs it at the same place of its queue.
struct AllReduceArgs {
  float* x = nullptr;  // [rows, cols]
  int rows = 0;
  int64_t cols = 0;
};

}  // namespace strata

#endif  // KERNELS_OPS_H_
