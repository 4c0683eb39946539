#ifndef KERNELS_CUDA_KV_PAGE_H_
#define KERNELS_CUDA_KV_PAGE_H_

#include <cstdint>

namespace strata::cuda {

// How a page keeps the keys and values of one leader layer, each [kv_heads,
// page_tokens, head_dim]:
//
//   kBf16  K, V
//   kFp8   K, V as E4M3 (kernels/fp8.h), then a scale for each token and head
//          of K and V, [2, kv_heads, page_tokens]
//
// A scale is a power of two, of which the byte is the exponent of f32, so that
// number times scale is a bf16 number too.  Each token has its own: its bits
// then do not depend on which tokens came with it, before it or after it, so
// that a prompt leaves the same page in one chunk, in several or token by
// token, and a page that requests share is that which each would have made.
enum class KvFormat { kBf16, kFp8 };

// From one page to the next, a multiple of 16.  REQUIRES: 16 divides head_dim,
// 4 page_tokens.
constexpr int64_t KvPageBytes(KvFormat format, int kv_heads, int page_tokens,
                              int head_dim) {
  const int64_t tokens = int64_t{2} * kv_heads * page_tokens;
  if (format == KvFormat::kBf16) return tokens * head_dim * 2;
  return (tokens * (head_dim + 1) + 15) / 16 * 16;
}

}  // namespace strata::cuda

#endif  // KERNELS_CUDA_KV_PAGE_H_
