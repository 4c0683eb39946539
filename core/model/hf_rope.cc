#include "core/model/hf_rope.h"

#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "core/model/file_error.h"
#include "core/model/rope.h"

namespace strata {
namespace {

constexpr double kDefaultTheta = 10000.0;

absl::StatusOr<double> Positive(const JsonFields& fields,
                                std::string_view key) {
  STRATA_ASSIGN_OR_RETURN(const double value, fields.Number(key));
  if (value > 0.0 && std::isfinite(static_cast<float>(value))) return value;
  return Malformed(fields.path(), fields.Name(key), " is ", value,
                   ", expected a positive number");
}

absl::StatusOr<std::vector<float>> Llama3(const JsonFields& fields,
                                          std::vector<float> inv_freq) {
  Llama3RopeScaling scaling;
  STRATA_ASSIGN_OR_RETURN(scaling.factor, Positive(fields, "factor"));
  STRATA_ASSIGN_OR_RETURN(scaling.low_freq_factor,
                          Positive(fields, "low_freq_factor"));
  STRATA_ASSIGN_OR_RETURN(scaling.high_freq_factor,
                          Positive(fields, "high_freq_factor"));
  STRATA_ASSIGN_OR_RETURN(scaling.original_positions,
                          Positive(fields, "original_max_position_embeddings"));
  if (!(scaling.low_freq_factor < scaling.high_freq_factor)) {
    return Malformed(fields.path(), fields.Name("low_freq_factor"),
                     " is not below ", fields.Name("high_freq_factor"));
  }
  return ScaleLlama3(scaling, std::move(inv_freq));
}

// The object that says how to scale, with its key; null if there is none.
std::pair<std::string, const nlohmann::json*> ScalingObject(
    const JsonFields& config) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (const nlohmann::json* object = config.Find(key)) return {key, object};
  }
  return {"", nullptr};
}

}  // namespace

absl::StatusOr<std::vector<float>> ParseHfRope(const JsonFields& config,
                                               int head_dim) {
  STRATA_ASSIGN_OR_RETURN(const double partial,
                          config.NumberOr("partial_rotary_factor", 1.0));
  if (partial != 1.0) {
    return Unsupported(config.path(), "partial_rotary_factor ", partial,
                       " is not supported");
  }
  const nlohmann::json no_scaling = nlohmann::json::object();
  auto [key, object] = ScalingObject(config);
  if (object == nullptr) object = &no_scaling;
  if (!object->is_object())
    return Malformed(config.path(), key, " is not an object");
  const JsonFields scaling(config.path(), *object, key);

  const JsonFields& theta_fields = scaling.Has("rope_theta") ? scaling : config;
  double theta = kDefaultTheta;
  if (theta_fields.Has("rope_theta")) {
    STRATA_ASSIGN_OR_RETURN(theta, Positive(theta_fields, "rope_theta"));
  }
  std::vector<float> inv_freq =
      RopeInvFreq(static_cast<float>(theta), head_dim);

  STRATA_ASSIGN_OR_RETURN(const std::string old_type,
                          scaling.StringOr("type", "default"));
  STRATA_ASSIGN_OR_RETURN(const std::string type,
                          scaling.StringOr("rope_type", old_type));
  if (type == "default") return inv_freq;
  if (type == "llama3") return Llama3(scaling, std::move(inv_freq));
  if (type == "linear") {
    STRATA_ASSIGN_OR_RETURN(const double factor, Positive(scaling, "factor"));
    return ScaleLinear(factor, std::move(inv_freq));
  }
  return Unsupported(config.path(), "RoPE scaling ", Quote(type),
                     " is not supported; default, linear and llama3 are");
}

}  // namespace strata
