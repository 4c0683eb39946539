#include "core/model/lora_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace strata {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kModule[] = "model.layers.3.self_attn.q_proj";

// As PEFT 0.21 writes it, with the fields that `changes` (a JSON merge patch)
// has.
absl::StatusOr<LoraConfig> Parse(const std::string& changes) {
  nlohmann::json config = nlohmann::json::parse(R"({
    "alora_invocation_tokens": null, "alpha_pattern": {}, "arrow_config": null,
    "auto_mapping": null, "base_model_name_or_path": "some/model",
    "bias": "none", "corda_config": null, "ensure_weight_tying": false,
    "eva_config": null, "exclude_modules": null, "fan_in_fan_out": false,
    "inference_mode": true, "init_lora_weights": true, "kasa_config": null,
    "layer_replication": null, "layers_pattern": null,
    "layers_to_transform": null, "loftq_config": {}, "lora_alpha": 7,
    "lora_bias": false, "lora_dropout": 0.1, "lora_ga_config": null,
    "megatron_config": null, "megatron_core": "megatron.core",
    "modules_to_save": ["norm"], "monteclora_config": null,
    "peft_type": "LORA", "peft_version": "0.21.2", "qalora_group_size": 16,
    "r": 5, "rank_pattern": {}, "revision": null,
    "target_modules": ["k_proj", "q_proj"], "target_parameters": null,
    "task_type": "CAUSAL_LM", "trainable_token_indices": null,
    "use_bdlora": null, "use_dora": false, "use_qalora": false,
    "use_rslora": false, "velora_config": null})");
  config.merge_patch(nlohmann::json::parse(changes));
  return LoraConfig::Parse("dir/adapter_config.json", config.dump());
}

TEST(LoraConfigTest, ReadsWhatPeftWrites) {
  const auto config = Parse("{}");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rank(), 5);
  EXPECT_THAT(config->modules_to_save(), ElementsAre("norm"));
  EXPECT_EQ(*config->RankOf(kModule), 5);
  EXPECT_EQ(*config->ScaleOf(kModule, 5), 1.4f);
}

TEST(LoraConfigTest, DefaultsAreThoseOfPeft) {
  const auto config = LoraConfig::Parse("p", R"({"peft_type": "LORA"})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rank(), 8);
  EXPECT_EQ(*config->ScaleOf(kModule, 8), 1.0f);
  EXPECT_THAT(config->modules_to_save(), ElementsAre());
}

TEST(LoraConfigTest, PatternsAndRsloraSetRankAndScale) {
  const auto config = Parse(R"({"use_rslora": true,
      "rank_pattern": {"layers.3.self_attn.q_proj": 9, "k_proj": 2},
      "alpha_pattern": {"[qk]_proj": 6, "down_proj": 0.5}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config->RankOf(kModule), 9);
  EXPECT_EQ(*config->RankOf("model.layers.13.self_attn.q_proj"), 5);
  EXPECT_EQ(*config->RankOf("model.layers.0.self_attn.k_proj"), 2);
  EXPECT_EQ(*config->ScaleOf(kModule, 9), 2.0f);
  EXPECT_EQ(*config->ScaleOf("model.layers.0.mlp.up_proj", 4), 3.5f);
  EXPECT_EQ(*config->ScaleOf("model.layers.0.mlp.down_proj", 4), 0.25f);
}

// PEFT's answer would depend on their order, which its files do not keep.
TEST(LoraConfigTest, PatternsThatDisagreeAreRefused) {
  auto config = Parse(R"({"alpha_pattern": {"q_proj": 1, "q.proj": 2}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(std::string(config->ScaleOf(kModule, 5).status().message()),
              AllOf(StartsWith("dir/adapter_config.json: alpha_pattern: "),
                    HasSubstr("\"q.proj\""), HasSubstr("\"q_proj\""),
                    HasSubstr(kModule)));
  EXPECT_TRUE(config->ScaleOf("model.layers.3.mlp.up_proj", 5).ok());
  config = Parse(R"({"rank_pattern": {"q_proj": 2, "q.proj": 2}})");
  EXPECT_EQ(*config->RankOf(kModule), 2);
  config = Parse(R"({"rank_pattern": {"q_proj(": 2}})");
  EXPECT_THAT(std::string(config->RankOf(kModule).status().message()),
              AllOf(StartsWith("dir/adapter_config.json: rank_pattern: "),
                    HasSubstr("\"q_proj(\"")));
}

TEST(LoraConfigTest, VariantsAreRefusedByName) {
  struct Case {
    const char* changes;
    const char* says;
  };
  for (const Case& c : {
           Case{R"({"peft_type": "IA3"})", "peft_type is \"IA3\""},
           {R"({"task_type": "SEQ_CLS"})", "task_type is \"SEQ_CLS\""},
           {R"({"bias": "all"})", "bias is \"all\""},
           {R"({"bias": "lora_only"})", "bias is \"lora_only\""},
           {R"({"fan_in_fan_out": true})", "\"fan_in_fan_out\" is \"true\""},
           {R"({"use_dora": true})", "\"use_dora\""},
           {R"({"use_qalora": true})", "\"use_qalora\""},
           {R"({"lora_bias": true})", "\"lora_bias\""},
           {R"({"layer_replication": [[0, 2]]})", "\"layer_replication\""},
           {R"({"target_parameters": ["w"]})", "\"target_parameters\""},
           {R"({"trainable_token_indices": [1]})",
            "\"trainable_token_indices\""},
           {R"({"alora_invocation_tokens": [1, 2]})",
            "\"alora_invocation_tokens\""},
           {R"({"use_bdlora": {"nblocks": 2}})", "\"use_bdlora\""},
           {R"({"arrow_config": {"top_k": 3}})", "\"arrow_config\""},
           {R"({"kasa_config": {"beta": 1}})", "\"kasa_config\""},
           {R"({"monteclora_config": {"n": 1}})", "\"monteclora_config\""},
           {R"({"ensure_weight_tying": true})", "\"ensure_weight_tying\""},
           {R"({"of_next_year": 0.5})", "\"of_next_year\" is \"0.5\""},
           {R"({"init_lora_weights": "pissa_niter_4"})", "pissa_niter_4"},
           {R"({"init_lora_weights": "olora"})", "init_lora_weights"},
           {R"({"init_lora_weights": "corda"})", "init_lora_weights"},
           {R"({"init_lora_weights": "loftq"})", "init_lora_weights"},
           {R"({"init_lora_weights": "lora_ga"})", "init_lora_weights"},
       }) {
    const absl::Status status = Parse(c.changes).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << c.changes << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(StartsWith("dir/adapter_config.json: "), HasSubstr(c.says)));
  }
  for (const char* fine :
       {R"({"init_lora_weights": "gaussian"})", R"({"task_type": null})",
        R"({"init_lora_weights": false})", R"({"of_next_year": []})",
        R"({"layers_to_transform": [1, 2]})", R"({"lora_dropout": 0.5})"}) {
    EXPECT_TRUE(Parse(fine).ok()) << fine;
  }
}

TEST(LoraConfigTest, WrongValuesAreRefused) {
  for (const char* changes :
       {R"({"r": 0})", R"({"r": -1})", R"({"r": 2.5})", R"({"r": "8"})",
        R"({"r": 100000})", R"({"lora_alpha": "8"})", R"({"use_rslora": 1})",
        R"({"rank_pattern": {"q_proj": 0}})",
        R"({"rank_pattern": {"q_proj": 1.5}})",
        R"({"rank_pattern": {"q_proj": "4"}})", R"({"rank_pattern": [4]})",
        R"({"alpha_pattern": {"q_proj": true}})", R"({"peft_type": null})",
        R"({"modules_to_save": "norm"})", R"({"modules_to_save": [1]})"}) {
    const absl::Status status = Parse(changes).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << changes << status;
    EXPECT_THAT(std::string(status.message()),
                StartsWith("dir/adapter_config.json: "));
  }
  EXPECT_FALSE(LoraConfig::Parse("p", "[]").ok());
  EXPECT_FALSE(LoraConfig::Parse("p", "{\"peft_type\": \"LORA\"").ok());
}

}  // namespace
}  // namespace strata
