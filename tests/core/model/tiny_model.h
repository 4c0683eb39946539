#ifndef TESTS_CORE_MODEL_TINY_MODEL_H_
#define TESTS_CORE_MODEL_TINY_MODEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/core/model/file_bytes.h"

namespace strata {

// A tensor of zeros to be written, by the name of its type.
struct TinyTensor {
  std::string type = "F32";
  std::vector<int64_t> shape;  // outermost first
};

// A model of two layers, as files: hidden 8, intermediate 12, 4 query heads, 2
// KV heads, head_dim 6, vocabulary 5. Change it before it is written.
struct TinyModel {
  // Of model_type llama, mistral, qwen2 or qwen3; untied.
  static TinyModel HuggingFace(const std::string& type);
  // Of architecture llama, qwen2 or qwen3; untied.
  static TinyModel Gguf(const std::string& architecture);

  std::string ConfigJson() const;
  std::string SafetensorsFile() const;
  std::string GgufFile() const;

  std::string type;
  std::string config_changes = "{}";  // a JSON merge patch for config.json
  std::map<std::string, TinyTensor> tensors;
  GgufBuilder metadata;  // of GGUF files
};

}  // namespace strata

#endif  // TESTS_CORE_MODEL_TINY_MODEL_H_
