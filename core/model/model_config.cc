#include "core/model/model_config.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace strata {
namespace {

// Limits far above any model, so that no product of two or three dimensions
// leaves int64.
constexpr int kMaxLayers = 1024;
constexpr int kMaxHidden = 1 << 20;
constexpr int kMaxIntermediate = 1 << 22;
constexpr int kMaxHeads = 4096;
constexpr int kMaxHeadDim = 1024;
constexpr int kMaxVocab = 1 << 24;
constexpr int kMaxPositions = 1 << 28;

absl::Status CheckRange(const char* field, int value, int max) {
  if (value >= 1 && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", expected 1 to ", max));
}

}  // namespace

absl::Status ModelConfig::ValidateDimensions() const {
  STRATA_RETURN_IF_ERROR(CheckRange("num_layers", num_layers, kMaxLayers));
  STRATA_RETURN_IF_ERROR(CheckRange("hidden_size", hidden_size, kMaxHidden));
  STRATA_RETURN_IF_ERROR(
      CheckRange("intermediate_size", intermediate_size, kMaxIntermediate));
  STRATA_RETURN_IF_ERROR(CheckRange("num_heads", num_heads, kMaxHeads));
  STRATA_RETURN_IF_ERROR(CheckRange("num_kv_heads", num_kv_heads, kMaxHeads));
  STRATA_RETURN_IF_ERROR(CheckRange("head_dim", head_dim, kMaxHeadDim));
  STRATA_RETURN_IF_ERROR(CheckRange("vocab_size", vocab_size, kMaxVocab));
  STRATA_RETURN_IF_ERROR(
      CheckRange("max_positions", max_positions, kMaxPositions));
  if (num_heads % num_kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_heads ", num_heads,
                     " is not a multiple of num_kv_heads ", num_kv_heads));
  }
  if (head_dim % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("head_dim ", head_dim, " is odd"));
  }
  return absl::OkStatus();
}

absl::Status ModelConfig::Validate() const {
  STRATA_RETURN_IF_ERROR(ValidateDimensions());
  if (!(rms_norm_eps > 0.0f) || !std::isfinite(rms_norm_eps)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rms_norm_eps is ", rms_norm_eps, ", expected a positive number"));
  }
  if (rope_inv_freq.size() != static_cast<size_t>(head_dim / 2)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rope_inv_freq has ", rope_inv_freq.size(),
                     " values, expected ", head_dim / 2));
  }
  for (const float value : rope_inv_freq) {
    if (!(value >= 0.0f) || !std::isfinite(value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a RoPE frequency is ", value, ", expected a finite one"));
    }
  }
  return absl::OkStatus();
}

}  // namespace strata
