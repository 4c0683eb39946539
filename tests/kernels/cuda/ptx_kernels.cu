#include <cstdint>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "tests/kernels/cuda/ptx_kernels.h"

namespace strata {
namespace {

__device__ uint32_t Pair(Bf16 low, Bf16 high) {
  return static_cast<uint32_t>(low) | static_cast<uint32_t>(high) << 16;
}

__global__ void MultiplyByElementKernel(const Bf16* a, const Bf16* b,
                                        float* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  uint32_t a_fragment[4], b_fragment[2];
  for (int i = 0; i < 4; ++i) {
    const Bf16* at = a + (g + i % 2 * 8) * 16 + 2 * t + i / 2 * 8;
    a_fragment[i] = Pair(at[0], at[1]);
  }
  for (int i = 0; i < 2; ++i) {
    const Bf16* at = b + (2 * t + i * 8) * 8 + g;
    b_fragment[i] = Pair(at[0], at[8]);
  }
  float sum[4];
  for (int i = 0; i < 4; ++i) {
    sum[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  }
  cuda::MmaBf16(sum, a_fragment, b_fragment);
  for (int i = 0; i < 4; ++i) {
    c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
  }
}

struct Operands {
  Bf16 a[16][16];
  Bf16 b[16][8];
};

__global__ void MultiplyByMatrixKernel(const Bf16* a, const Bf16* b, float* c) {
  Operands& shared = cuda::DynamicShared<Operands>();
  const int lane = threadIdx.x;
  cuda::CpAsync16(&shared.a[lane / 2][lane % 2 * 8], a + 8 * lane, true);
  if (lane < 16) cuda::CpAsync16(&shared.b[lane], b + 8 * lane, true);
  cuda::CpAsyncCommit();
  cuda::CpAsyncWait<0>();
  __syncwarp();
  uint32_t a_fragment[4], b_twice[4];
  cuda::Ldmatrix(a_fragment, &shared.a[lane % 16][lane / 16 * 8]);
  cuda::LdmatrixTrans(b_twice, &shared.b[lane % 16]);
  const uint32_t b_fragment[2] = {b_twice[0], b_twice[1]};

  // Lane (g, t) holds of rows g and g + 8 half of one float4.
  const int g = lane / 4, t = lane % 4;
  float sum[4];
  for (int i = 0; i < 2; ++i) {
    const float4 row = cuda::LoadEvictFirst(
        reinterpret_cast<const float4*>(c + (g + 8 * i) * 8 + t / 2 * 4));
    sum[2 * i] = t % 2 == 0 ? row.x : row.z;
    sum[2 * i + 1] = t % 2 == 0 ? row.y : row.w;
  }
  cuda::MmaBf16(sum, a_fragment, b_fragment);
  for (int i = 0; i < 4; ++i) {
    c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
  }
}

__global__ void TransposeKernel(const Bf16* in, Bf16* out) {
  const Bf16* from = in + 2 * threadIdx.x;
  const uint32_t pair = cuda::Transpose(Pair(from[0], from[1]));
  out[2 * threadIdx.x] = static_cast<Bf16>(pair & 0xffff);
  out[2 * threadIdx.x + 1] = static_cast<Bf16>(pair >> 16);
}

__global__ void CopyAndZeroKernel(const float* in, float* out) {
  float4* shared = &cuda::DynamicShared<float4[2]>()[0];
  if (threadIdx.x >= 2) return;
  cuda::CpAsync16(&shared[threadIdx.x], in, threadIdx.x == 0);
  cuda::CpAsyncCommit();
  cuda::CpAsyncWait<0>();
  reinterpret_cast<float4*>(out)[threadIdx.x] = shared[threadIdx.x];
}

__global__ void CopyAndZeroWordKernel(const float* in, float* out) {
  float* shared = &cuda::DynamicShared<float[2]>()[0];
  if (threadIdx.x >= 2) return;
  cuda::CpAsync4(&shared[threadIdx.x], in + 1, threadIdx.x == 0);
  cuda::CpAsyncCommit();
  cuda::CpAsyncWait<0>();
  out[threadIdx.x] = shared[threadIdx.x];
}

__global__ void Exp2Kernel(float* v) {
  v[threadIdx.x] = cuda::Exp2(v[threadIdx.x]);
}

constexpr dim3 kOne(1), kWarp(32);

}  // namespace

cudaError_t MultiplyByElement(const Bf16* a, const Bf16* b, float* c) {
  return cuda::Launch<MultiplyByElementKernel>({kOne, kWarp}, a, b, c);
}

cudaError_t MultiplyByMatrix(const Bf16* a, const Bf16* b, float* c) {
  return cuda::Launch<MultiplyByMatrixKernel>({kOne, kWarp, sizeof(Operands)},
                                              a, b, c);
}

cudaError_t TransposeMatrix(const Bf16* in, Bf16* out) {
  return cuda::Launch<TransposeKernel>({kOne, kWarp}, in, out);
}

cudaError_t CopyAndZero(const float* in, float* out) {
  return cuda::Launch<CopyAndZeroKernel>({kOne, kWarp, 2 * sizeof(float4)}, in,
                                         out);
}

cudaError_t CopyAndZeroWord(const float* in, float* out) {
  return cuda::Launch<CopyAndZeroWordKernel>({kOne, kWarp, 2 * sizeof(float)},
                                             in, out);
}

cudaError_t Exp2InPlace(float* v) {
  return cuda::Launch<Exp2Kernel>({kOne, kWarp}, v);
}

}  // namespace strata
