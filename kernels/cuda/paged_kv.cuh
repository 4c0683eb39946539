#ifndef KERNELS_CUDA_PAGED_KV_CUH_
#define KERNELS_CUDA_PAGED_KV_CUH_

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/ops.h"

// Where the cache keeps the keys and values of a row's sequence, and how the
// attention kernels hold them in shared memory and registers.
namespace strata::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kInfinity = __builtin_huge_valf();

// 16-byte chunks from one token to the next in shared memory: one more than a
// token has, hence an odd number, so that the chunks of 8 consecutive tokens,
// which an ldmatrix reads at once, lie in different banks.
template <int kHeadDim>
inline constexpr int kRowChunks = kHeadDim / 8 + 1;

// The pages that `layer` reads for `row`: token t lies in page
// [t / page_tokens].  REQUIRES: not a padding row.
__device__ inline const int32_t* PagesOf(const DeviceStep& step, int row,
                                         int layer) {
  const int slot =
      step.slot_of[int64_t{step.strategies[row]} * step.layers + layer];
  return step.pages + step.tables[row] +
         int64_t{slot} * step.table_strides[row];
}

// The first element in pages.data of the key of `token`, which lies in `page`.
// Its value lies ValueOffset(pages) behind.
__device__ inline int64_t KeyAt(const DevicePages& pages, int page, int kv_head,
                                int token) {
  return ((int64_t{page} * 2 * pages.kv_heads + kv_head) * pages.page_tokens +
          token % pages.page_tokens) *
         pages.head_dim;
}
__device__ inline int64_t ValueOffset(const DevicePages& pages) {
  return int64_t{pages.kv_heads} * pages.page_tokens * pages.head_dim;
}

// Two bf16 as a register of a fragment.
__device__ inline uint32_t PackBf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// launch.operator()<head_dim>(), for the sizes that attention is compiled for.
template <typename Launch>
cudaError_t WithHeadDim(int head_dim, Launch launch) {
  switch (head_dim) {
    case 16:
      return launch.template operator()<16>();
    case 32:
      return launch.template operator()<32>();
    case 64:
      return launch.template operator()<64>();
    case 80:
      return launch.template operator()<80>();
    case 96:
      return launch.template operator()<96>();
    case 128:
      return launch.template operator()<128>();
    case 256:
      return launch.template operator()<256>();
  }
  return cudaErrorInvalidValue;
}

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_PAGED_KV_CUH_
