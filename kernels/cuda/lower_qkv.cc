// The part of CudaBackend that lowers Qkv.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/packed_matrix.h"
#include "kernels/cuda/row_plan.h"

namespace strata::cuda {

int64_t CudaBackend::UploadKvRows(const QkvArgs& args, int rows,
                                  bool is_apart) {
  std::vector<int32_t> kv_rows(rows + 1, -1);
  for (size_t i = 0; i < args.kv_rows.size(); ++i) {
    kv_rows[args.kv_rows[i]] =
        is_apart ? static_cast<int32_t>(i) : args.kv_rows[i];
  }
  kv_rows[rows] = args.kv_rows.empty() ? 0 : 1;
  return upload_.Append(std::span<const int32_t>(kv_rows), rows + 1);
}

void CudaBackend::LowerQkvProducts(const QkvArgs& args, int rows, bool is_apart,
                                   int64_t any) {
  ProductArgs q = {.u = args.x,
                   .norm = args.norm.weight,
                   .eps = args.norm.eps,
                   .rows = rows};
  q.w[0] = PackedMatrix::Of(args.wq);
  q.bias[0] = args.bq;
  q.y = reinterpret_cast<float*>(qkv_.data());
  if (!is_apart) {
    q.w[1] = PackedMatrix::Of(args.wk);
    q.w[2] = PackedMatrix::Of(args.wv);
    q.bias[1] = args.bk;
    q.bias[2] = args.bv;
    LowerProduct(q, 3, kNothing, any);
    return;
  }
  LowerProduct(q, 1, kNothing, kNothing);
  if (args.kv_rows.empty()) return;
  const int num_kv = static_cast<int>(args.kv_rows.size());
  ProductArgs kv = {.u = args.x,
                    .norm = args.norm.weight,
                    .eps = args.norm.eps,
                    .rows = num_kv};
  kv.w[0] = PackedMatrix::Of(args.wk);
  kv.w[1] = PackedMatrix::Of(args.wv);
  kv.bias[0] = args.bk;
  kv.bias[1] = args.bv;
  kv.y = q.y + rows * args.wq->rows();
  LowerProduct(kv, 2, upload_.Append(args.kv_rows, num_kv), kNothing);
}

void CudaBackend::Lower(const QkvArgs& args) {
  const int step_index = Upload(*args.step);
  const int rows = steps_[step_index].rows;
  // A graph must not depend on which rows lead: it computes K and V of all of
  // them or, by a flag in the upload, of none.
  const bool is_apart =
      !only_decodes_ && static_cast<int>(args.kv_rows.size()) < rows;
  const int64_t q_width = args.wq->rows(), kv_width = 2 * args.wk->rows();
  NeedScratch(&qkv_, rows * (q_width + kv_width) * int64_t{sizeof(float)});
  const int64_t kv_rows = UploadKvRows(args, rows, is_apart);
  LowerQkvProducts(args, rows, is_apart,
                   kv_rows + rows * int64_t{sizeof(int32_t)});

  const bool all = only_decodes_ || IsIdentity(args.q_rows, rows);
  const int64_t q_floats = q_width / 2;  // of a row, as bf16
  if (!all) NeedScratch(&q_, rows * q_floats * int64_t{sizeof(float)});
  RopeAppendArgs append = {
      .q_stride = is_apart ? q_width : q_width + kv_width,
      .kv_stride = is_apart ? kv_width : q_width + kv_width,
      .step = {},
      .pages = pages_,
      .layer = args.layer,
      .q_heads = static_cast<int>(q_width) / pages_.head_dim,
      .q_norm = args.q_norm.weight,
      .k_norm = args.k_norm.weight,
      .eps = args.q_norm.weight != nullptr ? args.q_norm.eps : args.k_norm.eps,
      .inv_freq = args.inv_freq,
      .q = reinterpret_cast<Bf16*>(args.q)};
  AddLaunch([=, this]() mutable {
    append.q_in = reinterpret_cast<const float*>(qkv_.data());
    append.kv_in = append.q_in + (is_apart ? rows * q_width : q_width);
    append.kv_rows = upload_.At<int32_t>(kv_rows);
    append.step = ToDevice(steps_[step_index], /*decoding=*/false);
    if (!all) append.q = reinterpret_cast<Bf16*>(q_.data());
    return cuda::RopeAppend(append, stream_);
  });
  if (all || args.q_rows.empty()) return;
  const int num_kept = static_cast<int>(args.q_rows.size());
  const int64_t kept = upload_.Append(args.q_rows, num_kept);
  AddLaunch([=, this, q = args.q] {
    return cuda::Gather({.x = reinterpret_cast<const float*>(q_.data()),
                         .row_ids = upload_.At<int32_t>(kept),
                         .rows = num_kept,
                         .dim = static_cast<int>(q_floats),
                         .y = q},
                        stream_);
  });
}

}  // namespace strata::cuda
