#include "kernels/cpu/projections.h"

#include <algorithm>
#include <span>

namespace strata::cpu {

namespace {

// The backend packs no other matrices.
const PackedMatrix* Packed(const Matrix* w) {
  return static_cast<const PackedMatrix*>(w);
}

}  // namespace

void Linear(const LinearArgs& args, Matmul& matmul, const Worker& worker) {
  const MatmulOutput output = {.w = Packed(args.w),
                               .bias = args.bias,
                               .y = args.y,
                               .accumulate = args.accumulate};
  matmul.Run({.x = args.x, .cols = args.w->cols(), .num_rows = args.rows},
             {&output, 1}, worker);
}

void GatedMlp(const GatedMlpArgs& args, Matmul& matmul, const Worker& worker) {
  const MatmulOutput output = {
      .w = Packed(args.gate), .up = Packed(args.up), .y = args.y};
  matmul.Run({.x = args.x,
              .cols = args.gate->cols(),
              .num_rows = args.rows,
              .norm = args.norm},
             {&output, 1}, worker);
}

void Head(const HeadArgs& args, Matmul& matmul, const Worker& worker) {
  const int num_rows = static_cast<int>(args.row_ids.size());
  const int64_t tokens = args.w->rows();
  const int64_t vocab = args.vocab > 0 ? args.vocab : tokens;
  const MatmulOutput output = {.w = Packed(args.w),
                               .y = args.logits + args.first_token,
                               .stride = vocab};
  const Share rows = worker.ShareOf(num_rows);
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    float* logits = args.logits + i * vocab;
    std::fill_n(logits, args.first_token, 0.0f);
    std::fill(logits + args.first_token + tokens, logits + vocab, 0.0f);
  }
  matmul.Run({.x = args.x,
              .cols = args.w->cols(),
              .num_rows = num_rows,
              .row_ids = args.row_ids.data(),
              .norm = args.norm},
             {&output, 1}, worker);
}

void ProjectQkv(const QkvArgs& args, Matmul& matmul, float* k, float* v,
                const Worker& worker) {
  const MatmulOutput outputs[] = {
      {.w = Packed(args.wq), .bias = args.bq, .y = args.q},
      {.w = Packed(args.wk), .bias = args.bk, .y = k},
      {.w = Packed(args.wv), .bias = args.bv, .y = v}};
  MatmulInput input = {.x = args.x,
                       .cols = args.wq->cols(),
                       .num_rows = static_cast<int>(args.q_rows.size()),
                       .row_ids = args.q_rows.data(),
                       .norm = args.norm};
  if (std::ranges::equal(args.q_rows, args.kv_rows)) {
    return matmul.Run(input, outputs, worker);
  }
  matmul.Run(input, std::span(outputs).first(1), worker);
  worker.Sync();
  input.num_rows = static_cast<int>(args.kv_rows.size());
  input.row_ids = args.kv_rows.data();
  matmul.Run(input, std::span(outputs).last(2), worker);
}

}  // namespace strata::cpu
