#include "core/model/rope.h"

#include <cmath>
#include <numbers>

namespace strata {

std::vector<float> RopeInvFreq(float theta, int head_dim) {
  std::vector<float> inv_freq(head_dim / 2);
  for (int i = 0; i < head_dim / 2; ++i) {
    const float exponent =
        static_cast<float>(2 * i) / static_cast<float>(head_dim);
    inv_freq[i] = 1.0f / std::pow(theta, exponent);
  }
  return inv_freq;
}

std::vector<float> ScaleLlama3(const Llama3RopeScaling& scaling,
                               std::vector<float> inv_freq) {
  const auto factor = static_cast<float>(scaling.factor);
  const auto low = static_cast<float>(scaling.low_freq_factor);
  const auto positions = static_cast<float>(scaling.original_positions);
  const auto low_wavelength =
      static_cast<float>(scaling.original_positions / scaling.low_freq_factor);
  const auto high_wavelength =
      static_cast<float>(scaling.original_positions / scaling.high_freq_factor);
  const auto span =
      static_cast<float>(scaling.high_freq_factor - scaling.low_freq_factor);
  for (float& value : inv_freq) {
    // torch divides a scalar by a tensor as reciprocal times scalar.
    const float wavelength =
        1.0f / value * static_cast<float>(2.0 * std::numbers::pi);
    if (wavelength > low_wavelength) {
      value /= factor;
    } else if (!(wavelength < high_wavelength)) {
      const float smooth = (1.0f / wavelength * positions - low) / span;
      value = (1.0f - smooth) * value / factor + smooth * value;
    }
  }
  return inv_freq;
}

std::vector<float> ScaleLinear(double factor, std::vector<float> inv_freq) {
  for (float& value : inv_freq) value /= static_cast<float>(factor);
  return inv_freq;
}

}  // namespace strata
