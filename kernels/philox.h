#ifndef KERNELS_PHILOX_H_
#define KERNELS_PHILOX_H_

#include <cstdint>

#ifdef __CUDACC__
#define STRATA_HOST_DEVICE __host__ __device__
#else
#define STRATA_HOST_DEVICE
#endif

// The random numbers of sampling, for every backend the same.
namespace strata {

struct PhiloxWords {
  uint32_t word[4];
};

// Philox4x32-10: four random words as a function of a counter and a key. Salmon
// et al., "Parallel random numbers: as easy as 1, 2, 3", SC11.
STRATA_HOST_DEVICE constexpr PhiloxWords Philox(PhiloxWords counter,
                                                uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter.word[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter.word[2];
    counter = {{static_cast<uint32_t>(b >> 32) ^ counter.word[1] ^ key0,
                static_cast<uint32_t>(b),
                static_cast<uint32_t>(a >> 32) ^ counter.word[3] ^ key1,
                static_cast<uint32_t>(a)}};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// In (0, 1), of the arguments that SampleRow names so.
STRATA_HOST_DEVICE constexpr double SampleUniform(uint64_t seed, uint32_t index,
                                                  uint32_t position) {
  const PhiloxWords words =
      Philox({{index, position, 0, 0}}, static_cast<uint32_t>(seed),
             static_cast<uint32_t>(seed >> 32));
  const uint64_t bits = uint64_t{words.word[0]} << 20 | words.word[1] >> 12;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

}  // namespace strata

#endif  // KERNELS_PHILOX_H_
