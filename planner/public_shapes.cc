#include "planner/public_shapes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/quote.h"

namespace strata {
namespace {

struct Shape {
  const char* name;
  const char* architecture;
  int layers, hidden, intermediate, heads, kv_heads, head_dim, vocab, positions;
  bool tied;
};

constexpr Shape kShapes[] = {
    {"llama-3.1-8b", "llama", 32, 4096, 14336, 32, 8, 128, 128256, 131072,
     false},
    {"llama-3.1-70b", "llama", 80, 8192, 28672, 64, 8, 128, 128256, 131072,
     false},
    {"llama-3.2-1b", "llama", 16, 2048, 8192, 32, 8, 64, 128256, 131072, true},
    {"mistral-7b-v0.3", "mistral", 32, 4096, 14336, 32, 8, 128, 32768, 32768,
     false},
    {"qwen2.5-7b-instruct", "qwen2", 28, 3584, 18944, 28, 4, 128, 152064, 32768,
     false},
    {"qwen3-0.6b", "qwen3", 28, 1024, 3072, 16, 8, 128, 151936, 40960, true},
    {"qwen3-1.7b", "qwen3", 28, 2048, 6144, 16, 8, 128, 151936, 40960, true},
    {"qwen3-8b", "qwen3", 36, 4096, 12288, 32, 8, 128, 151936, 40960, false},
    {"qwen3-32b", "qwen3", 64, 5120, 25600, 64, 8, 128, 151936, 40960, false},
    {"smollm2-135m", "llama", 30, 576, 1536, 9, 3, 64, 49152, 8192, true},
    {"smollm2-1.7b", "llama", 24, 2048, 8192, 32, 32, 64, 49152, 8192, true},
};

ModelDescription Describe(const Shape& shape) {
  ModelDescription description;
  description.config = {.architecture = shape.architecture,
                        .num_layers = shape.layers,
                        .hidden_size = shape.hidden,
                        .intermediate_size = shape.intermediate,
                        .num_heads = shape.heads,
                        .num_kv_heads = shape.kv_heads,
                        .head_dim = shape.head_dim,
                        .vocab_size = shape.vocab,
                        .max_positions = shape.positions,
                        .rms_norm_eps = 1e-6f,
                        .rope_inv_freq = {},  // no product is computed
                        .tied_embeddings = shape.tied};
  const std::string_view architecture = shape.architecture;
  description.has_qkv_bias = architecture == "qwen2";
  description.has_qk_norm = architecture == "qwen3";
  return description;
}

}  // namespace

absl::StatusOr<ModelDescription> FindPublicShape(std::string_view name) {
  std::string allowed;
  for (const Shape& shape : kShapes) {
    if (name == shape.name) return Describe(shape);
    absl::StrAppend(&allowed, allowed.empty() ? "" : ", ", shape.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Quote(name), " is no shape: allowed are ", allowed));
}

}  // namespace strata
