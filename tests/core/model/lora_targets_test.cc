#include "core/model/lora_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

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

// The answers are those of PEFT 0.21's check_target_module_exists.
TEST(LoraTargetsTest, DecidesAsPeft) {
  struct Case {
    const char* config;
    const char* module;
    bool is_in;
  };
  for (const Case& c : {
           Case{"{}", kQ3, true},
           {R"({"target_modules": "all-linear"})", kQ3, true},
           {R"({"target_modules": ["v_proj", "q_proj"]})", kQ3, true},
           {R"({"target_modules": ["v_proj"]})", kQ3, false},
           {R"({"target_modules": ["proj"]})", kQ3, false},
           {R"({"target_modules": ["self_attn.q_proj"]})", kQ3, true},
           {R"({"target_modules": ["lm_head"]})", "lm_head", true},
           {R"({"target_modules": ".*[qv]_proj"})", kQ3, true},
           {R"({"target_modules": ".*[kv]_proj"})", kQ3, false},
           {R"({"exclude_modules": ["q_proj"]})", kQ3, false},
           {R"({"exclude_modules": ".*layers.3.*"})", kQ3, false},
           {R"({"exclude_modules": ["k_proj"]})", kQ3, true},
           {R"({"layers_to_transform": []})", kQ3, true},
           {R"({"layers_to_transform": 3})", kQ3, true},
           {R"({"layers_to_transform": [1, 3]})", kQ3, true},
           {R"({"layers_to_transform": [1, 33], "layers_pattern": "layers"})",
            kQ3, false},
           {R"({"layers_to_transform": 0})", "lm_head", false},
       }) {
    const auto is_in = Includes(c.config, c.module);
    ASSERT_TRUE(is_in.ok()) << c.config << is_in.status();
    EXPECT_EQ(*is_in, c.is_in) << c.config << " " << c.module;
  }
}

TEST(LoraTargetsTest, WrongValuesAreNamed) {
  for (const char* config :
       {R"({"target_modules": 3})", R"({"target_modules": [3]})",
        R"({"exclude_modules": {"q": 1}})", R"({"exclude_modules": "q_proj("})",
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
