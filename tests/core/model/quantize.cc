#include "tests/core/model/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "kernels/bf16.h"
#include "kernels/cpu/half.h"
#include "tests/core/model/file_bytes.h"

namespace strata {
namespace {

constexpr int kBlock = 32;

float Inverse(float d) { return d != 0.0f ? 1.0f / d : 0.0f; }

std::string PackNibbles(const uint8_t* q /*[32]*/) {
  std::string bytes;
  for (int i = 0; i < 16; ++i)
    bytes += static_cast<char>(q[i] | q[i + 16] << 4);
  return bytes;
}

std::string BlockQ8_0(std::span<const float> x) {
  float largest = 0.0f;
  for (const float v : x) largest = std::max(largest, std::abs(v));
  const float d = largest / 127.0f;
  std::string bytes = Bytes(ToHalf(d));
  for (const float v : x)
    bytes += static_cast<char>(std::lround(v * Inverse(d)));
  return bytes;
}

std::string BlockQ4_0(std::span<const float> x) {
  float extreme = 0.0f;  // with its sign
  for (const float v : x) {
    if (std::abs(v) > std::abs(extreme)) extreme = v;
  }
  const float d = extreme / -8.0f;
  uint8_t q[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    q[i] = static_cast<uint8_t>(std::min(15.0f, x[i] * Inverse(d) + 8.5f));
  }
  return Bytes(ToHalf(d)) + PackNibbles(q);
}

std::string BlockQ4_1(std::span<const float> x) {
  const auto [least, largest] = std::ranges::minmax(x);
  const float d = (largest - least) / 15.0f;
  uint8_t q[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    q[i] = static_cast<uint8_t>(
        std::min(15.0f, (x[i] - least) * Inverse(d) + 0.5f));
  }
  return Bytes(ToHalf(d)) + Bytes(ToHalf(least)) + PackNibbles(q);
}

std::string OneBlock(DType type, std::span<const float> x) {
  switch (type) {
    case DType::kF32:
      return Bytes(x[0]);
    case DType::kF16:
      return Bytes(ToHalf(x[0]));
    case DType::kBF16:
      return Bytes(ToBf16(x[0]));
    case DType::kQ8_0:
      return BlockQ8_0(x);
    case DType::kQ4_0:
      return BlockQ4_0(x);
    case DType::kQ4_1:
      return BlockQ4_1(x);
  }
  return "";
}

}  // namespace

uint16_t ToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const float magnitude = std::abs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (magnitude >= 65520.0f) return sign | 0x7c00;
  // Subnormal: a multiple of 2^-24, which carries into the smallest normal
  // number.
  if (magnitude < 0x1p-14f)
    return sign | static_cast<uint16_t>(std::lrint(magnitude * 0x1p24f));
  const uint32_t rounded = (bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1);
  return sign | static_cast<uint16_t>((rounded >> 13) - (112 << 10));
}

std::string Quantize(DType type, std::span<const float> values) {
  const size_t block = BlockElements(type);
  STRATA_CHECK(values.size() % block == 0);
  std::string bytes;
  bytes.reserve(values.size() / block * BlockBytes(type));
  for (size_t i = 0; i < values.size(); i += block)
    bytes += OneBlock(type, values.subspan(i, block));
  return bytes;
}

}  // namespace strata
