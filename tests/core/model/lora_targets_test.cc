#include "core/model/lora_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/model/layer_tensors.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kQ3[] = "model.layers.3.self_attn.q_proj";

// What the config `text` says of `module`; errors are those of either.
absl::StatusOr<bool> Includes(const std::string& text,
                              const std::string& module) {
  const nlohmann::json root = nlohmann::json::parse(text);
  const auto targets = LoraTargets::Parse(JsonFields("file", root));
  if (!targets.ok()) return targets.status();
  return targets->Include(module);
}

// Every linear layer of a model of 12 layers, as make_lora_targets.py has it.
std::vector<std::string> Modules() {
  std::vector<std::string> modules = {"lm_head"};
  for (int layer = 0; layer < 12; ++layer) {
    for (const LayerMatrix& matrix : kLayerMatrices) {
      const std::string tensor = matrix.hugging_face;
      modules.push_back("model.layers." + std::to_string(layer) + "." +
                        tensor.substr(0, tensor.rfind(".weight")));
    }
  }
  return modules;
}

// Whether PEFT gave `module` an update.
bool PeftTakes(const nlohmann::json& answer, const std::string& module) {
  if (module == "lm_head") return answer["lm_head"];
  const size_t number = std::string("model.layers.").size();
  const size_t kind = module.find('.', number) + 1;
  const auto& layers = answer["layers"];
  const auto found = layers.find(module.substr(kind));
  if (found == layers.end()) return false;
  const int layer = std::stoi(module.substr(number));
  return std::ranges::count(*found, nlohmann::json(layer)) > 0;
}

TEST(LoraTargetsTest, DecidesAsPeft) {
  std::ifstream file("tests/golden/lora_targets.json");
  const nlohmann::json answers = nlohmann::json::parse(file);
  ASSERT_GT(answers.size(), 20);
  for (const auto& answer : answers) {
    const std::string config = answer["config"].dump();
    for (const std::string& module : Modules()) {
      const auto is_in = Includes(config, module);
      ASSERT_TRUE(is_in.ok()) << config << is_in.status();
      EXPECT_EQ(*is_in, PeftTakes(answer, module)) << config << " " << module;
    }
  }
}

TEST(LoraTargetsTest, WithoutTargetsAllModulesAre) {
  for (const std::string& module : Modules()) {
    EXPECT_TRUE(*Includes("{}", module)) << module;
  }
  EXPECT_FALSE(*Includes(R"({"exclude_modules": ["q_proj"]})", kQ3));
  EXPECT_FALSE(*Includes(R"({"layers_to_transform": 1})", kQ3));
}

TEST(LoraTargetsTest, WrongValuesAreNamed) {
  for (const char* config :
       {R"({"target_modules": 3})", R"({"target_modules": [3]})",
        R"({"exclude_modules": {"q": 1}})", R"({"exclude_modules": "q_proj("})",
        R"({"modules_to_save": ["q_proj("]})",
        R"({"layers_to_transform": "3"})", R"({"layers_to_transform": [-1]})",
        R"({"layers_to_transform": [1.5]})"}) {
    const absl::Status status = Includes(config, kQ3).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << config << status;
    EXPECT_THAT(std::string(status.message()), StartsWith("file: "));
  }
  const auto blocks =
      Includes(R"({"layers_to_transform": 1, "layers_pattern": "h"})", kQ3);
  EXPECT_TRUE(absl::IsUnimplemented(blocks.status())) << blocks.status();
  EXPECT_THAT(std::string(blocks.status().message()),
              AllOf(StartsWith("file: "), HasSubstr("layers_pattern is")));
}

}  // namespace
}  // namespace strata
