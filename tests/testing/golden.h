#ifndef TESTS_TESTING_GOLDEN_H_
#define TESTS_TESTING_GOLDEN_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace strata {

inline constexpr const char* kGoldenModels[] = {
    "llama-tied", "llama3-ropescaled", "mistral", "qwen2-bias", "qwen3-qknorm"};

// The right answers for one model of tests/golden, computed by PyTorch in f32:
// golden.json and golden.safetensors.
struct Golden {
  explicit Golden(const std::string& model) {
    const std::string folder = "tests/golden/" + model + "/";
    std::ifstream(folder + "golden.json") >> json;
    std::ifstream file(folder + "golden.safetensors", std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
    header = nlohmann::json::parse(bytes.substr(8, header_bytes));
    data = bytes.substr(8 + header_bytes);
  }

  std::vector<int32_t> prompt() const {
    return json["prompt"].get<std::vector<int32_t>>();
  }

  // Log-softmax of the logits that `name` has for `row`; of all the vocabulary.
  std::vector<double> Logprobs(const std::string& name, int row) const {
    const nlohmann::json& tensor = header.at(name);
    const int64_t vocab = tensor["shape"][1];
    std::vector<float> logits(vocab);
    const size_t begin =
        tensor["data_offsets"][0].get<size_t>() + row * vocab * sizeof(float);
    std::memcpy(logits.data(), data.data() + begin, vocab * sizeof(float));
    double top = logits[0], sum = 0;
    for (float v : logits) top = std::max<double>(top, v);
    for (float v : logits) sum += std::exp(v - top);
    std::vector<double> logprobs;
    for (float v : logits) logprobs.push_back(v - top - std::log(sum));
    return logprobs;
  }

  nlohmann::json json;
  nlohmann::json header;
  std::string data;
};

}  // namespace strata

#endif  // TESTS_TESTING_GOLDEN_H_
