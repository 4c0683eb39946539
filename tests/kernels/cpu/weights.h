#ifndef TESTS_KERNELS_CPU_WEIGHTS_H_
#define TESTS_KERNELS_CPU_WEIGHTS_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/dtype.h"

namespace strata {

inline constexpr DType kAllDTypes[] = {DType::kF32,  DType::kF16,
                                       DType::kBF16, DType::kQ8_0,
                                       DType::kQ4_0, DType::kQ4_1};

// The bits of a number in [2^-14, 65504) as an IEEE 754 binary16, cut off.
inline uint16_t TruncateToHalf(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  return static_cast<uint16_t>((bits >> 16 & 0x8000) |
                               ((bits >> 13 & 0x3ffff) - (112 << 10)));
}

// The value of a normal binary16 or zero.
inline double HalfValue(uint16_t half) {
  const int exponent = half >> 10 & 31;
  if (exponent == 0) return std::ldexp(half & 0x3ff, -24);
  const double magnitude = std::ldexp((half & 0x3ff) | 0x400, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

inline std::vector<float> RandomFloats(int64_t n, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& v : values) v = normal(random);
  return values;
}

// Random weights as a file has them.
struct TestWeights {
  std::vector<std::byte> bytes;
  WeightView view;

  // rows of a file, the order of which interleaved_head_dim describes.
  TestWeights(DType type, int64_t rows, int64_t cols, std::mt19937_64& random,
              int interleaved_head_dim = 0) {
    view = {.data = nullptr,
            .type = type,
            .rows = rows,
            .cols = cols,
            .interleaved_head_dim = interleaved_head_dim};
    bytes.resize(view.NumBytes());
    view.data = bytes.data();
    std::uniform_real_distribution<float> scale(0.005f, 0.05f);
    std::normal_distribution<float> normal;
    for (int64_t at = 0; at < view.NumBytes(); at += BlockBytes(type)) {
      std::byte* block = bytes.data() + at;
      switch (type) {
        case DType::kF32: {
          const float v = normal(random);
          std::memcpy(block, &v, 4);
          break;
        }
        case DType::kF16: {
          PutHalf(block, (random() % 2 == 0 ? 1 : -1) * 30 * scale(random));
          break;
        }
        case DType::kBF16: {
          const Bf16 v = ToBf16(normal(random));
          std::memcpy(block, &v, 2);
          break;
        }
        default:
          for (int i = 0; i < BlockBytes(type); ++i) {
            block[i] = static_cast<std::byte>(random());
          }
          PutHalf(block, scale(random));
          if (type == DType::kQ4_1) PutHalf(block + 2, -8 * scale(random));
      }
    }
  }

  // The weight of an output and input of the matrix meant, by the definition of
  // the format; `size` gets the sum of the absolute values of its terms.
  double At(int64_t row, int64_t col, double* size = nullptr) const {
    const std::byte* data =
        view.data + view.StoredRow(row) * view.RowBytes() +
        col / BlockElements(view.type) * BlockBytes(view.type);
    const int i = static_cast<int>(col % 32);
    double q = 0, m = 0;
    switch (view.type) {
      case DType::kF32: {
        float v;
        std::memcpy(&v, data, 4);
        q = v;
        break;
      }
      case DType::kF16:
        q = GetHalf(data);
        break;
      case DType::kBF16: {
        Bf16 v;
        std::memcpy(&v, data, 2);
        q = ToFloat(v);
        break;
      }
      case DType::kQ8_0:
        q = GetHalf(data) * static_cast<int8_t>(data[2 + i]);
        break;
      case DType::kQ4_0:
        q = GetHalf(data) * (Nibble(data + 2, i) - 8);
        break;
      case DType::kQ4_1:
        q = GetHalf(data) * Nibble(data + 4, i);
        m = GetHalf(data + 2);
        break;
    }
    if (size != nullptr) *size = std::abs(q) + std::abs(m);
    return q + m;
  }

 private:
  static void PutHalf(std::byte* at, float v) {
    const uint16_t half = TruncateToHalf(v);
    std::memcpy(at, &half, 2);
  }
  static double GetHalf(const std::byte* at) {
    uint16_t half;
    std::memcpy(&half, at, 2);
    return HalfValue(half);
  }
  static int Nibble(const std::byte* q, int i) {
    const int pair = static_cast<int>(q[i % 16]);
    return i < 16 ? pair & 15 : pair >> 4;
  }
};

}  // namespace strata

#endif  // TESTS_KERNELS_CPU_WEIGHTS_H_
