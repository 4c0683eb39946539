#ifndef CORE_MODEL_ROPE_H_
#define CORE_MODEL_ROPE_H_

#include <vector>

namespace strata {

// Rotary embeddings: the angle of pair i at a position is position *
// inv_freq[i].  Computed in f32 with the operations of transformers'
// modeling_rope_utils, in their order.

// inv_freq[i] = theta^(-2i / head_dim), i < head_dim / 2.
// REQUIRES: theta > 0; head_dim even and positive.
std::vector<float> RopeInvFreq(float theta, int head_dim);

// Llama 3.1's extension of the context: long wavelengths are divided by
// `factor`, short ones stay, those between are interpolated.
struct Llama3RopeScaling {
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;  // > low_freq_factor
  double original_positions = 0.0;
};
std::vector<float> ScaleLlama3(const Llama3RopeScaling& scaling,
                               std::vector<float> inv_freq);

// Divides all by `factor` (positions are interpolated).
std::vector<float> ScaleLinear(double factor, std::vector<float> inv_freq);

}  // namespace strata

#endif  // CORE_MODEL_ROPE_H_
