#include "tests/server/e2e/text_model.h"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "base/check.h"
#include "tests/server/e2e/zero_model.h"

namespace strata {
namespace {

constexpr const char* kTokenizer =
    "tests/core/text/testdata/smollm.tokenizer.json";

constexpr const char* kChatMl =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if "
    "add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

// Overwrites all weights with bf16 numbers in (-0.5, 0.5).
void FillRandom(const std::string& path) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  uint64_t header_bytes = 0;
  file.read(reinterpret_cast<char*>(&header_bytes), sizeof(header_bytes));
  const auto begin = static_cast<std::streamoff>(8 + header_bytes);
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
  std::vector<uint16_t> weights((size - begin) / sizeof(uint16_t));
  std::mt19937_64 random(1);
  std::uniform_real_distribution<float> weight(-0.5f, 0.5f);
  for (uint16_t& w : weights) {
    const float value = weight(random);
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    w = static_cast<uint16_t>(bits >> 16);
  }
  file.seekp(begin);
  file.write(reinterpret_cast<const char*>(weights.data()),
             static_cast<std::streamsize>(weights.size() * sizeof(uint16_t)));
  STRATA_CHECK(file.good());
}

}  // namespace

std::string WriteTextModel(const std::string& name, int max_positions) {
  const ZeroModel shape = {.hidden = 64,
                           .intermediate = 96,
                           .layers = 4,
                           .vocab = 1013,
                           .max_positions = max_positions};
  const std::string directory = shape.Write(name);
  FillRandom(directory + "/model.safetensors");
  std::filesystem::copy_file(kTokenizer, directory + "/tokenizer.json",
                             std::filesystem::copy_options::overwrite_existing);
  std::ofstream(directory + "/tokenizer_config.json") << nlohmann::json{
      {"chat_template", kChatMl}, {"eos_token", "<|im_end|>"}};
  std::ofstream(directory + "/generation_config.json") << nlohmann::json{
      {"eos_token_id", {kTextModelImEnd, kTextModelEndOfText}}};
  return directory;
}

}  // namespace strata
