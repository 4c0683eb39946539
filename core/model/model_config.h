#ifndef CORE_MODEL_MODEL_CONFIG_H_
#define CORE_MODEL_MODEL_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace strata {

// The dimensions of a decoder-only transformer.  Knows no files and no devices.
// Validated once, when it is made from a file; immutable after that.
struct ModelConfig {
  std::string architecture;  // "llama", "mistral", "qwen2", "qwen3"
  int num_layers = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_heads = 0;  // of queries; a multiple of num_kv_heads
  int num_kv_heads = 0;
  int head_dim = 0;       // even; not always hidden_size / num_heads
  int vocab_size = 0;     // rows of the embedding
  int max_positions = 0;  // the context that the model was made for
  float rms_norm_eps = 0.0f;
  std::vector<float>
      rope_inv_freq;  // [head_dim / 2], scaling applied, radians per position
  bool tied_embeddings = false;

  // INVALID_ARGUMENT naming the field that is out of range or does not fit the
  // others.
  absl::Status Validate() const;
  // The same for the integers alone: what is sized by them may be made after
  // that.
  absl::Status ValidateDimensions() const;
};

}  // namespace strata

#endif  // CORE_MODEL_MODEL_CONFIG_H_
