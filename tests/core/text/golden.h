#ifndef TESTS_CORE_TEXT_GOLDEN_H_
#define TESTS_CORE_TEXT_GOLDEN_H_

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "absl/strings/escaping.h"
#include "core/text/tokenizer.h"
#include "core/text/tokenizer_json.h"

namespace strata {

constexpr char kGoldenConfig[] =
    R"({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|endoftext|>",
        "eos_token": "<|im_end|>"})";

inline std::string ReadGoldenText(const std::string& name) {
  std::ifstream file("tests/core/text/testdata/" + name);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

inline nlohmann::json ReadGolden(const std::string& name) {
  return nlohmann::json::parse(ReadGoldenText(name));
}

inline std::string FromBase64(const std::string& text) {
  std::string bytes;
  EXPECT_TRUE(absl::Base64Unescape(text, &bytes));
  return bytes;
}

inline std::unique_ptr<const Tokenizer> GoldenTokenizer(
    const std::string& name) {
  auto spec = ParseTokenizerJson(ReadGoldenText(name + ".tokenizer.json"),
                                 kGoldenConfig);
  EXPECT_TRUE(spec.ok()) << spec.status();
  auto tokenizer = Tokenizer::Create(*std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

}  // namespace strata

#endif  // TESTS_CORE_TEXT_GOLDEN_H_
