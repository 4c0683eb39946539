#include "kernels/cpu/rope_append.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "kernels/cpu/rms_norm.h"

namespace strata::cpu {
namespace {

// The rotation of one position: cos and sin of its angles, [head_dim / 2] each.
class Rotation {
 public:
  explicit Rotation(int head_dim)
      : half_(head_dim / 2), cos_(half_), sin_(half_) {}

  void SetPosition(int32_t position, const float* inv_freq) {
    for (int i = 0; i < half_; ++i) {
      const float angle = static_cast<float>(position) * inv_freq[i];
      cos_[i] = std::cos(angle);
      sin_[i] = std::sin(angle);
    }
  }

  void Apply(float* head /*[head_dim]*/) const {
    for (int i = 0; i < half_; ++i) {
      const float u = head[i], w = head[i + half_];
      head[i] = u * cos_[i] - w * sin_[i];
      head[i + half_] = w * cos_[i] + u * sin_[i];
    }
  }

 private:
  const int half_;
  std::vector<float> cos_, sin_;
};

void NormAndRotate(float* x /*[heads, head_dim]*/, int heads, int head_dim,
                   const RmsNorm& norm, const Rotation& rotation) {
  for (int h = 0; h < heads; ++h) {
    NormalizeRow(x + h * head_dim, norm, head_dim, x + h * head_dim);
    rotation.Apply(x + h * head_dim);
  }
}

// Where the rows from `row` on begin in a rising list.
size_t LowerBound(std::span<const int32_t> rows, int64_t row) {
  return std::lower_bound(rows.begin(), rows.end(), row) - rows.begin();
}

}  // namespace

void RopeAppend(const QkvArgs& args, int head_dim, int kv_heads, float* k,
                const float* v, KvPages& pages, const Worker& worker) {
  const Step& step = *args.step;
  const int64_t q_dim = args.wq->rows(), kv_dim = int64_t{kv_heads} * head_dim;
  const int page_tokens = pages.layout().page_tokens;
  Rotation rotation(head_dim);
  // Both lists are walked together, so that a position's angles are computed
  // once.
  const Share share = worker.ShareOf(step.rows());
  size_t i = LowerBound(args.q_rows, share.begin),
         j = LowerBound(args.kv_rows, share.begin);
  for (int64_t row = share.begin; row < share.end; ++row) {
    const bool has_q = i < args.q_rows.size() && args.q_rows[i] == row;
    const bool has_kv = j < args.kv_rows.size() && args.kv_rows[j] == row;
    if (!has_q && !has_kv) continue;
    const int32_t position = step.positions[row];
    rotation.SetPosition(position, args.inv_freq);
    if (has_q) {
      NormAndRotate(args.q + i++ * q_dim, q_dim / head_dim, head_dim,
                    args.q_norm, rotation);
    }
    if (!has_kv) continue;
    float* row_k = k + j * kv_dim;
    NormAndRotate(row_k, kv_heads, head_dim, args.k_norm, rotation);
    const StepChunk& chunk = step.chunks[step.chunk_of[row]];
    const int32_t page =
        chunk.page_table[int64_t{step.SlotOf(chunk, args.layer)} *
                             chunk.blocks_stride +
                         position / page_tokens];
    for (int h = 0; h < kv_heads; ++h) {
      pages.Store(page, h, position % page_tokens, row_k + h * head_dim,
                  v + j * kv_dim + h * head_dim);
    }
    ++j;
  }
}

}  // namespace strata::cpu
