#include <cstdint>

#include "kernels/cuda/fp8.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/paged_kv.cuh"
#include "kernels/cuda/ptx.cuh"

namespace strata::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kMaxHeadDim = 256;

// A head in a warp: of each half of its channels every lane holds the pairs of
// neighbours lane, lane + 32, ..., which rotate with their like in the other
// half.  Those beyond the half are zeros.
class Head {
 public:
  __device__ Head(const float* x /*[head_dim]*/, int head_dim)
      : half_(head_dim / 2) {
    for (int j = 0; j < kPairs; ++j) {
      low_[j] = high_[j] = {0.0f, 0.0f};
      if (At(j) >= half_) continue;
      low_[j] = *reinterpret_cast<const float2*>(x + At(j));
      high_[j] = *reinterpret_cast<const float2*>(x + At(j) + half_);
    }
  }

  __device__ void Normalize(const float* weight /*[head_dim]*/, float eps) {
    float sum = 0.0f;
    for (int j = 0; j < kPairs; ++j) {
      sum += low_[j].x * low_[j].x + low_[j].y * low_[j].y +
             high_[j].x * high_[j].x + high_[j].y * high_[j].y;
    }
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(kAllLanes, sum, d);
    const float scale = rsqrtf(sum / static_cast<float>(2 * half_) + eps);
    for (int j = 0; j < kPairs; ++j) {
      if (At(j) >= half_) continue;
      const float* w = weight + At(j);
      low_[j] = {low_[j].x * scale * w[0], low_[j].y * scale * w[1]};
      high_[j] = {high_[j].x * scale * w[half_],
                  high_[j].y * scale * w[half_ + 1]};
    }
  }

  __device__ void Rotate(int position, const float* inv_freq /*[half]*/) {
    for (int j = 0; j < kPairs; ++j) {
      if (At(j) >= half_) continue;
      Rotate(position * inv_freq[At(j)], low_[j].x, high_[j].x);
      Rotate(position * inv_freq[At(j) + 1], low_[j].y, high_[j].y);
    }
  }

  __device__ void Store(Bf16* y /*[head_dim]*/) const {
    for (int j = 0; j < kPairs; ++j) {
      if (At(j) >= half_) continue;
      *reinterpret_cast<uint32_t*>(y + At(j)) = PackBf16(low_[j].x, low_[j].y);
      *reinterpret_cast<uint32_t*>(y + At(j) + half_) =
          PackBf16(high_[j].x, high_[j].y);
    }
  }

  // As the page of fp8 has it, with its scale.
  __device__ void Store(Fp8* y /*[head_dim]*/, unsigned char* scale_at) const {
    const uint32_t scale = ScaleFor(MaxBits());
    const float factor = scale < kInfiniteScale ? InverseScale(scale) : 0.0f;
    if (threadIdx.x % 32 == 0) *scale_at = static_cast<unsigned char>(scale);
    for (int j = 0; j < kPairs; ++j) {
      if (At(j) >= half_) continue;
      for (int i = 0; i < 2; ++i) {
        const float2 v = i == 0 ? low_[j] : high_[j];
        *reinterpret_cast<uint16_t*>(y + At(j) + i * half_) =
            factor > 0 ? NarrowToFp8(v.x * factor, v.y * factor) : 0;
      }
    }
  }

 private:
  static constexpr int kPairs = kMaxHeadDim / 2 / 64;

  __device__ static int At(int j) { return 2 * (threadIdx.x % 32 + 32 * j); }

  __device__ static void Rotate(float angle, float& u, float& w) {
    float sin, cos;
    sincosf(angle, &sin, &cos);
    const float u_before = u;
    u = u * cos - w * sin;
    w = w * cos + u_before * sin;
  }

  // Of all sizes; as integers, so that a NaN is the largest.
  __device__ uint32_t MaxBits() const {
    uint32_t max_bits = 0;
    for (int j = 0; j < kPairs; ++j) {
      for (const float v : {low_[j].x, low_[j].y, high_[j].x, high_[j].y}) {
        max_bits = max(max_bits, __float_as_uint(fabsf(v)));
      }
    }
    for (int d = 16; d > 0; d /= 2) {
      max_bits = max(max_bits, __shfl_xor_sync(kAllLanes, max_bits, d));
    }
    return max_bits;
  }

  const int half_;
  float2 low_[kPairs], high_[kPairs];
};

// To the cache, as head `kv_head` of the K heads and then the V heads.
template <typename Element>
__device__ void Append(const RopeAppendArgs& args, int row, int position,
                       int kv_head, const Head& x) {
  const DevicePages& pages = args.pages;
  const int page =
      PagesOf(args.step, row, args.layer)[position / pages.page_tokens];
  auto* const at = reinterpret_cast<Element*>(
      Slab(pages) + KeyAt<Element>(pages, page, kv_head, position));
  if constexpr (sizeof(Element) == 1) {
    x.Store(at, Slab(pages) + KeyScaleAt(pages, page, kv_head, position));
  } else {
    x.Store(at);
  }
}

// Grid [rows, heads / kWarps, rounded up]: a warp has one head of Q, K or V.
template <typename Element>
__global__ void __launch_bounds__(kThreads)
    RopeAppendKernel(RopeAppendArgs args) {
  const DevicePages& pages = args.pages;
  const int row = blockIdx.x, head_dim = pages.head_dim;
  const int heads = args.q_heads + 2 * pages.kv_heads;
  const int head = blockIdx.y * kWarps + threadIdx.x / 32;
  const int kv_head = head - args.q_heads;  // K's, then V's
  GriddepWait();
  GriddepLaunch();

  if (head >= heads) return;
  const int position = args.step.positions[row];
  if (position < 0) return;
  const float* in = args.q_in + row * args.q_stride + head * head_dim;
  if (kv_head >= 0) {
    const int64_t kv_row = args.kv_rows[row];
    if (kv_row < 0) return;
    in = args.kv_in + kv_row * args.kv_stride + kv_head * head_dim;
  }
  Head x(in, head_dim);
  if (kv_head < pages.kv_heads) {
    const float* norm = kv_head < 0 ? args.q_norm : args.k_norm;
    if (norm != nullptr) x.Normalize(norm, args.eps);
    x.Rotate(position, args.inv_freq);
  }
  if (kv_head < 0) {
    x.Store(args.q + (int64_t{row} * args.q_heads + head) * head_dim);
  } else {
    Append<Element>(args, row, position, kv_head, x);
  }
}

}  // namespace

cudaError_t RopeAppend(const RopeAppendArgs& args, cudaStream_t stream) {
  const DevicePages& pages = args.pages;
  if (pages.head_dim % 16 != 0 || pages.head_dim > kMaxHeadDim) {
    return cudaErrorInvalidValue;
  }
  if (args.step.rows == 0)
    return cudaSuccess;  // a grid of 0 blocks is an error
  const int heads = args.q_heads + 2 * pages.kv_heads;
  return WithElement(pages.format, [&]<typename Element>() {
    return Launch<RopeAppendKernel<Element>>(
        {.grid = dim3(args.step.rows, (heads + kWarps - 1) / kWarps),
         .block = dim3(kThreads),
         .stream = stream,
         .overlap = true},
        args);
  });
}

}  // namespace strata::cuda
