// The part of CudaBackend that says what there is room for, and makes it.

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/pack.h"

namespace strata::cuda {
namespace {

// What the kernels were made for (WithHeadDim of paged_kv.cuh, ops.h).
constexpr int kHeadDims[] = {16, 32, 64, 80, 96, 128, 256};
constexpr int kMaxGroup = 16;
constexpr int kMaxVocab = 1 << 20;

absl::StatusOr<int64_t> BytesOf(const WeightView& view, bool fp8_weights) {
  if (view.cols % 16 != 0) {
    return absl::UnimplementedError(
        absl::StrCat("the CUDA backend takes matrices of a multiple of 16 "
                     "columns, not of ",
                     view.cols));
  }
  return PackedBytes(view, FormatOf(view.type, fp8_weights));
}

}  // namespace

absl::StatusOr<int64_t> CudaBackend::FreeBytes() const {
  size_t free_bytes = 0, total_bytes = 0;
  const cudaError_t error = cudaMemGetInfo(&free_bytes, &total_bytes);
  if (error != cudaSuccess) {
    return absl::InternalError(
        absl::StrCat("CUDA, free memory: ", cudaGetErrorString(error)));
  }
  return static_cast<int64_t>(free_bytes);
}

absl::StatusOr<int64_t> CudaBackend::PackedBytes(const WeightView& view) const {
  return BytesOf(view, options_.fp8_weights);
}

absl::StatusOr<int64_t> CudaBackend::TableBytes(const WeightView& table) const {
  return BytesOf(table, /*fp8_weights=*/false);
}

absl::StatusOr<int64_t> CudaBackend::Reserve(const KvLayout& layout) {
  STRATA_CHECK(slab_.data() == nullptr);
  if (error_.ok()) error_ = CheckQueue(layout);
  if (error_.ok()) {
    SetPageShape(layout);
    LowerQueue();
    Latch(upload_.Reserve(), "memory for what a step reads");
    Latch(results_.Reserve(), "memory of the host for tokens");
  }
  queue_.clear();
  launches_.clear();
  if (!error_.ok()) return error_;
  int64_t num_bytes =
      activation_bytes_ + upload_.num_bytes() + results_.num_bytes();
  for (const DeviceBuffer* buffer :
       {&qkv_, &q_, &gate_up_, &product_, &split_, &arrived_, &sample_}) {
    num_bytes += buffer->num_bytes();
  }
  return num_bytes;
}

absl::Status CudaBackend::CheckQueue(const KvLayout& layout) const {
  if (std::ranges::find(kHeadDims, layout.head_dim) == std::end(kHeadDims)) {
    return absl::UnimplementedError(absl::StrCat(
        "the CUDA backend takes a head_dim of ", absl::StrJoin(kHeadDims, ", "),
        ", not of ", layout.head_dim));
  }
  for (const Operation& operation : queue_) {
    const auto* attention = std::get_if<strata::AttentionArgs>(&operation);
    if (attention != nullptr &&
        attention->q_heads > kMaxGroup * layout.kv_heads) {
      return absl::UnimplementedError(
          absl::StrCat("the CUDA backend takes up to ", kMaxGroup,
                       " query heads for each of K and V, not ",
                       attention->q_heads, " for ", layout.kv_heads));
    }
    const auto* sample = std::get_if<strata::SampleArgs>(&operation);
    if (sample != nullptr && sample->vocab > kMaxVocab) {
      return absl::UnimplementedError(
          absl::StrCat("the CUDA backend takes vocabularies of up to ",
                       kMaxVocab, " tokens, not of ", sample->vocab));
    }
  }
  return absl::OkStatus();
}

void CudaBackend::SetPageShape(const KvLayout& layout) {
  pages_.kv_heads = layout.kv_heads;
  pages_.page_tokens = layout.page_tokens;
  pages_.head_dim = layout.head_dim;
  pages_.format = page_format();
  pages_.page_bytes = PageBytes(layout);
}

}  // namespace strata::cuda
