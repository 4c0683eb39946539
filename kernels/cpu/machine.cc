#include "kernels/cpu/machine.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/aligned_buffer.h"
#include "kernels/cpu/worker.h"

namespace strata::cpu {

namespace {

// Short and many, to find some that no other process disturbs.
constexpr int kPasses = 40;

// The shortest time of `kPasses` calls by the team, in seconds.
template <class Work>
double BestSeconds(ThreadTeam& team, const Work& work) {
  double best = 1e9;
  for (int i = 0; i < kPasses; ++i) {
    const auto start = std::chrono::steady_clock::now();
    team.Run(work);
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

// Keeps the compiler from dropping the computation of v.
template <class T>
void Use(T& v) {
  asm volatile("" : "+x"(v));
}

__attribute__((target("avx2"))) void Read(const std::byte* data,
                                          int64_t bytes) {
  __m256i sums[4] = {};
  for (int64_t i = 0; i + 128 <= bytes; i += 128) {
    for (int j = 0; j < 4; ++j) {
      const auto* p = reinterpret_cast<const __m256i*>(data + i + j * 32);
      sums[j] = _mm256_xor_si256(sums[j], _mm256_load_si256(p));
    }
  }
  for (__m256i& sum : sums) Use(sum);
}

// 12 independent chains of one instruction hide its latency.
constexpr int kChains = 12;
#define UNROLL _Pragma("GCC unroll 12")  // else the chains are in memory
constexpr int64_t kSteps = 400'000;

__attribute__((target("avx2,fma"))) void F32LoopAvx2() {
  __m256 acc[kChains] = {};
  UNROLL for (auto& a : acc) asm volatile("" : "+v"(a));
  __m256 x = _mm256_set1_ps(1.0f);
  for (int64_t i = 0; i < kSteps; ++i) {
    Use(x);
    UNROLL for (__m256& a : acc) a = _mm256_fmadd_ps(x, x, a);
  }
  UNROLL for (__m256& a : acc) Use(a);
}

__attribute__((target("avx512f"))) void F32LoopAvx512() {
  __m512 acc[kChains] = {};
  UNROLL for (auto& a : acc) asm volatile("" : "+v"(a));
  __m512 x = _mm512_set1_ps(1.0f);
  for (int64_t i = 0; i < kSteps; ++i) {
    asm volatile("" : "+v"(x));
    UNROLL for (__m512& a : acc) a = _mm512_fmadd_ps(x, x, a);
  }
  UNROLL for (__m512& a : acc) asm volatile("" : "+v"(a));
}

__attribute__((target("avx512f,avx512bf16"))) void Bf16Loop() {
  __m512 acc[kChains] = {};
  UNROLL for (auto& a : acc) asm volatile("" : "+v"(a));
  __m512i x = _mm512_set1_epi32(0x3f803f80);
  for (int64_t i = 0; i < kSteps; ++i) {
    asm volatile("" : "+v"(x));
    UNROLL for (__m512& a : acc) a =
        _mm512_dpbf16_ps(a, (__m512bh)x, (__m512bh)x);
  }
  UNROLL for (__m512& a : acc) asm volatile("" : "+v"(a));
}

__attribute__((target("avx512f,avx512vnni"))) void Int8LoopAvx512() {
  __m512i acc[kChains] = {};
  UNROLL for (auto& a : acc) asm volatile("" : "+v"(a));
  __m512i x = _mm512_set1_epi32(0x01010101);
  for (int64_t i = 0; i < kSteps; ++i) {
    asm volatile("" : "+v"(x));
    UNROLL for (__m512i& a : acc) a = _mm512_dpbusd_epi32(a, x, x);
  }
  UNROLL for (__m512i& a : acc) asm volatile("" : "+v"(a));
}

// AVX2 has no product of bytes with a sum of 32 bits: this is the product with
// a sum of 16 bits, and that one's addition.
__attribute__((target("avx2"))) void Int8LoopAvx2() {
  __m256i acc[kChains] = {};
  UNROLL for (__m256i& a : acc) Use(a);
  __m256i x = _mm256_set1_epi32(0x01010101);
  for (int64_t i = 0; i < kSteps; ++i) {
    UNROLL for (__m256i& a : acc) {
      Use(x);  // else one product serves all chains
      a = _mm256_add_epi16(a, _mm256_maddubs_epi16(x, x));
    }
  }
  UNROLL for (__m256i& a : acc) Use(a);
}

// The operations of kSteps steps of `ops` each, in units of 10^9 a second.
template <class Loop>
double Rate(ThreadTeam& team, int ops, const Loop& loop) {
  const double seconds = BestSeconds(team, [&](const Worker&) { loop(); });
  return 1e-9 * team.size() * kSteps * kChains * ops / seconds;
}

}  // namespace

double ReadGigabytes(ThreadTeam& team, int64_t num_bytes) {
  AlignedBuffer data(num_bytes);
  const auto read = [&](const Worker& worker) {
    const Share share = worker.ShareOf(data.size(), 4096);
    Read(data.data() + share.begin, share.end - share.begin);
  };
  // Memory never written is one shared page of zeros.
  for (int64_t i = 0; i < data.size(); i += 4096) data.data()[i] = std::byte{1};
  return 1e-9 * static_cast<double>(data.size()) / BestSeconds(team, read);
}

double F32Gigaflops(ThreadTeam& team, Isa isa) {
  if (isa == Isa::kAvx512) return Rate(team, 32, F32LoopAvx512);
  if (isa == Isa::kAvx2) return Rate(team, 16, F32LoopAvx2);
  return 0;
}

double Bf16Gigaflops(ThreadTeam& team, Isa isa) {
  return isa == Isa::kAvx512 ? Rate(team, 64, Bf16Loop) : 0;
}

double Int8Gigaops(ThreadTeam& team, Isa isa) {
  if (isa == Isa::kAvx512) return Rate(team, 128, Int8LoopAvx512);
  if (isa == Isa::kAvx2) return Rate(team, 64, Int8LoopAvx2);
  return 0;
}

}  // namespace strata::cpu
