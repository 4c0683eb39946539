#ifndef TESTS_CORE_MODEL_TINY_ADAPTER_H_
#define TESTS_CORE_MODEL_TINY_ADAPTER_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/dtype.h"
#include "tests/core/model/file_bytes.h"
#include "tests/core/model/quantize.h"
#include "tests/core/model/temp_files.h"

namespace strata {

// The two files of an adapter.  Change it before it is written.
struct TinyAdapter {
  struct Tensor {
    std::string type = "F32";
    std::vector<int64_t> shape;
    std::string bytes;
  };

  // A tensor whose elements are 1/8, 2/8, ...
  void Add(const std::string& name, const std::vector<int64_t>& shape,
           DType type = DType::kF32) {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    std::vector<float> values(count);
    for (int64_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(i + 1) / 8;
    }
    tensors[kPrefix + name] = {DTypeName(type), shape, Quantize(type, values)};
  }
  // The pair of one module.
  void AddPair(const std::string& module, int64_t outputs, int64_t inputs,
               int64_t rank, DType type = DType::kF32) {
    Add(module + ".lora_A.weight", {rank, inputs}, type);
    Add(module + ".lora_B.weight", {outputs, rank}, type);
  }

  std::string SafetensorsFile() const {
    nlohmann::json header = nlohmann::json::object();
    std::string data;
    for (const auto& [name, tensor] : tensors) {
      const size_t begin = data.size();
      data += tensor.bytes;
      header[name] = {{"dtype", tensor.type},
                      {"shape", tensor.shape},
                      {"data_offsets", {begin, data.size()}}};
    }
    return Safetensors(header.dump(), data);
  }

  void Write(const TempDirectory& directory) const {
    directory.Write("adapter_config.json", config.dump());
    directory.Write("adapter_model.safetensors", SafetensorsFile());
  }

  static constexpr char kPrefix[] = "base_model.model.";
  nlohmann::json config = {{"peft_type", "LORA"}, {"r", 3}, {"lora_alpha", 6}};
  std::map<std::string, Tensor> tensors;
};

}  // namespace strata

#endif  // TESTS_CORE_MODEL_TINY_ADAPTER_H_
