#include "core/model/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/model/rope.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr const char* kPath = "dir/config.json";

// A valid configuration of `type`, with `changes` merged in (null removes).
absl::StatusOr<ModelDescription> Parse(const char* type,
                                       const std::string& changes = "{}") {
  nlohmann::json config = {
      {"model_type", type},       {"num_hidden_layers", 3},
      {"hidden_size", 48},        {"intermediate_size", 96},
      {"num_attention_heads", 6}, {"num_key_value_heads", 2},
      {"vocab_size", 100},        {"max_position_embeddings", 512}};
  config.merge_patch(nlohmann::json::parse(changes));
  return ParseHfConfig(kPath, config.dump());
}

TEST(HfConfigTest, HasTheDefaultsOfTransformers) {
  auto llama = Parse("llama", R"({"num_key_value_heads":null})");
  ASSERT_TRUE(llama.ok()) << llama.status();
  const ModelConfig& config = llama->config;
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.num_kv_heads, 6);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.rms_norm_eps, 1e-6f);
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_EQ(config.rope_inv_freq, RopeInvFreq(10000.0f, 8));
  EXPECT_FALSE(llama->has_qkv_bias);
  EXPECT_FALSE(llama->has_output_bias);
  EXPECT_FALSE(llama->has_qk_norm);
  EXPECT_THAT(llama->eos_ids, IsEmpty());

  auto qwen2 = Parse("qwen2");
  ASSERT_TRUE(qwen2.ok()) << qwen2.status();
  EXPECT_TRUE(qwen2->has_qkv_bias);
  EXPECT_FALSE(qwen2->has_output_bias);
  EXPECT_EQ(qwen2->config.head_dim, 8);

  auto qwen3 = Parse("qwen3");
  ASSERT_TRUE(qwen3.ok()) << qwen3.status();
  EXPECT_TRUE(qwen3->has_qk_norm);
  EXPECT_FALSE(qwen3->has_qkv_bias);
  EXPECT_EQ(qwen3->config.head_dim, 128);

  auto mistral = Parse("mistral");
  ASSERT_TRUE(mistral.ok()) << mistral.status();
}

TEST(HfConfigTest, ReadsWhatIsWritten) {
  auto llama = Parse(
      "llama", R"({"head_dim":10,"attention_bias":true,"rms_norm_eps":1e-5,
                                  "tie_word_embeddings":true,"rope_theta":500000,"eos_token_id":7})");
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_EQ(llama->config.head_dim, 10);
  EXPECT_EQ(llama->config.rms_norm_eps, 1e-5f);
  EXPECT_TRUE(llama->config.tied_embeddings);
  EXPECT_TRUE(llama->has_qkv_bias);
  EXPECT_TRUE(llama->has_output_bias);
  EXPECT_EQ(llama->config.rope_inv_freq, RopeInvFreq(500000.0f, 10));
  EXPECT_THAT(llama->eos_ids, ElementsAre(7));
  EXPECT_THAT(Parse("qwen2", R"({"eos_token_id":[3,5,3]})")->eos_ids,
              ElementsAre(3, 5));
}

TEST(HfConfigTest, ReadsRopeInEveryForm) {
  const std::vector<float> plain = RopeInvFreq(20000.0f, 8);
  const std::vector<float> linear = ScaleLinear(4.0, plain);
  const std::vector<float> llama3 = ScaleLlama3({.factor = 8.0,
                                                 .low_freq_factor = 1.0,
                                                 .high_freq_factor = 4.0,
                                                 .original_positions = 64.0},
                                                plain);
  struct Case {
    const char* changes;
    std::vector<float> want;
  };
  for (
      const Case& c : {
          Case{R"({"rope_theta":20000})", plain},
          Case{R"({"rope_theta":20000,"rope_scaling":null})", plain},
          Case{R"({"rope_theta":20000,"rope_scaling":{"rope_type":"default"}})",
               plain},
          Case{
              R"({"rope_parameters":{"rope_type":"default","rope_theta":20000}})",
              plain},
          Case{R"({"rope_theta":1,"rope_parameters":{"rope_theta":20000}})",
               plain},
          Case{
              R"({"rope_theta":20000,"rope_scaling":{"type":"linear","factor":4}})",
              linear},
          Case{
              R"({"rope_theta":20000,"rope_scaling":{"rope_type":"linear","factor":4.0}})",
              linear},
          Case{
              R"({"rope_parameters":{"rope_type":"linear","factor":4,"rope_theta":20000}})",
              linear},
          Case{
              R"({"rope_theta":20000,"rope_scaling":{"rope_type":"llama3","type":"yarn","factor":8,
                   "low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":64}})",
              llama3},
      }) {
    auto description = Parse("llama", c.changes);
    ASSERT_TRUE(description.ok()) << description.status();
    EXPECT_EQ(description->config.rope_inv_freq, c.want) << c.changes;
  }
}

TEST(HfConfigTest, AllowsSlidingWindowsThatAreNotInUse) {
  EXPECT_TRUE(Parse("mistral", R"({"sliding_window":512})").ok());
  // Null is not "absent": merge_patch would remove it, so it is written out.
  EXPECT_TRUE(
      ParseHfConfig(
          kPath,
          R"({"model_type":"mistral","num_hidden_layers":3,"hidden_size":48,
      "intermediate_size":96,"num_attention_heads":6,"num_key_value_heads":2,"vocab_size":100,
      "max_position_embeddings":100000,"sliding_window":null})")
          .ok());
  EXPECT_TRUE(
      Parse("qwen2", R"({"sliding_window":64,"use_sliding_window":false})")
          .ok());
  EXPECT_TRUE(
      Parse(
          "qwen2",
          R"({"sliding_window":64,"use_sliding_window":true,"max_window_layers":3})")
          .ok());
  EXPECT_TRUE(
      Parse("qwen3", R"({"layer_types":["full_attention","full_attention"]})")
          .ok());
  EXPECT_TRUE(Parse("llama", R"({"sliding_window":64})").ok());
}

struct Refusal {
  const char* type;
  const char* changes;
  const char* message;
};

TEST(HfConfigTest, RefusesByNameWhatItDoesNotRun) {
  for (
      const Refusal& c : {
          Refusal{"gemma2", "{}",
                  "model_type \"gemma2\" is not supported; llama,"},
          Refusal{"mistral", R"({"sliding_window":511})",
                  "sliding_window 511 below"},
          Refusal{"mistral", R"({"max_position_embeddings":8192})",
                  "sliding_window 4096 below"},
          Refusal{
              "qwen2",
              R"({"sliding_window":64,"use_sliding_window":true,"max_window_layers":2})",
              "sliding_window 64"},
          Refusal{"qwen3",
                  R"({"layer_types":["full_attention","sliding_attention"]})",
                  "\"sliding_attention\" is not supported"},
          Refusal{"llama", R"({"hidden_act":"gelu"})", "hidden_act \"gelu\""},
          Refusal{"llama", R"({"mlp_bias":true})", "mlp_bias"},
          Refusal{"llama", R"({"quantization_config":{"quant_method":"gptq"}})",
                  "\"gptq\""},
          Refusal{"llama", R"({"quantization_config":7})",
                  "quantization_config"},
          Refusal{"llama", R"({"partial_rotary_factor":0.5})",
                  "partial_rotary_factor 0.5"},
          Refusal{"llama",
                  R"({"rope_scaling":{"rope_type":"yarn","factor":4}})",
                  "\"yarn\""},
          Refusal{"llama", R"({"rope_scaling":{"type":"dynamic","factor":4}})",
                  "\"dynamic\""},
          Refusal{"llama", R"({"rope_parameters":{"rope_type":"longrope"}})",
                  "\"longrope\""},
      }) {
    const absl::Status status = Parse(c.type, c.changes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented)
        << c.changes << status;
    EXPECT_THAT(std::string(status.message()), StartsWith("dir/config.json: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(HfConfigTest, RefusesWrongValues) {
  for (
      const Refusal& c : {
          Refusal{"llama", R"({"model_type":null})", "model_type is missing"},
          Refusal{"llama", R"({"model_type":3})", "model_type is"},
          Refusal{"llama", R"({"num_hidden_layers":null})",
                  "num_hidden_layers is missing"},
          Refusal{"llama", R"({"num_hidden_layers":0})", "num_layers is 0"},
          Refusal{"llama", R"({"num_hidden_layers":1025})",
                  "num_layers is 1025"},
          Refusal{"llama", R"({"hidden_size":-48})", "hidden_size"},
          Refusal{"llama", R"({"hidden_size":48.5})", "hidden_size"},
          Refusal{"llama", R"({"hidden_size":99999999999})", "hidden_size"},
          Refusal{"llama", R"({"hidden_size":50})",
                  "not a multiple of num_attention_heads 6"},
          Refusal{"llama", R"({"hidden_size":2097150})",
                  "hidden_size is 2097150, expected 1 to"},
          Refusal{"llama", R"({"intermediate_size":0})",
                  "intermediate_size is 0"},
          Refusal{"llama", R"({"num_attention_heads":0})",
                  "num_attention_heads 0"},
          Refusal{"llama", R"({"num_attention_heads":0,"head_dim":8})",
                  "num_heads is 0"},
          Refusal{"llama", R"({"num_key_value_heads":0})", "num_kv_heads is 0"},
          Refusal{"llama", R"({"num_key_value_heads":4})",
                  "not a multiple of num_kv_heads 4"},
          Refusal{"llama", R"({"num_key_value_heads":12})",
                  "not a multiple of num_kv_heads 12"},
          Refusal{"qwen3", R"({"num_key_value_heads":null})",
                  "num_key_value_heads is missing"},
          Refusal{"llama", R"({"head_dim":7})", "head_dim 7 is odd"},
          Refusal{"llama", R"({"head_dim":0})", "head_dim is 0"},
          Refusal{"llama", R"({"head_dim":2000000000})",
                  "head_dim is 2000000000"},
          Refusal{"llama", R"({"vocab_size":0})", "vocab_size is 0"},
          Refusal{"llama", R"({"vocab_size":2147483647})",
                  "vocab_size is 2147483647"},
          Refusal{"llama", R"({"max_position_embeddings":0})",
                  "max_positions is 0"},
          Refusal{"llama", R"({"rms_norm_eps":0})", "rms_norm_eps is 0"},
          Refusal{"llama", R"({"rms_norm_eps":-1e-6})",
                  "rms_norm_eps is -1e-06"},
          Refusal{"llama", R"({"rms_norm_eps":1e300})", "rms_norm_eps is inf"},
          Refusal{"llama", R"({"rms_norm_eps":"1e-6"})", "expected a number"},
          Refusal{"llama", R"({"tie_word_embeddings":1})",
                  "expected true or false"},
          Refusal{"llama", R"({"rope_theta":0})", "rope_theta is 0"},
          Refusal{"llama", R"({"rope_theta":1e39})", "rope_theta is 1e+39"},
          Refusal{"llama", R"({"rope_scaling":"linear"})",
                  "rope_scaling is not an object"},
          Refusal{"llama", R"({"rope_scaling":{"type":"linear"}})",
                  "rope_scaling.factor is missing"},
          Refusal{"llama", R"({"rope_scaling":{"type":"linear","factor":0}})",
                  "factor is 0"},
          Refusal{"llama",
                  R"({"rope_scaling":{"rope_type":"llama3","factor":8}})",
                  "rope_scaling.low_freq_factor is missing"},
          Refusal{
              "llama",
              R"({"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":4,
                   "high_freq_factor":4,"original_max_position_embeddings":64}})",
              "low_freq_factor is not below"},
          Refusal{"llama", R"({"layer_types":"full_attention"})",
                  "layer_types is not a list"},
          Refusal{"llama", R"({"eos_token_id":100})", "ids below 100"},
          Refusal{"llama", R"({"eos_token_id":-1})", "ids below 100"},
          Refusal{"llama", R"({"eos_token_id":[1,"x"]})", "ids below 100"},
      }) {
    const absl::Status status = Parse(c.type, c.changes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << c.changes << status;
    EXPECT_THAT(std::string(status.message()), StartsWith("dir/config.json: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(HfConfigTest, GenerationConfigReplacesTheEndTokens) {
  auto description = Parse("llama", R"({"eos_token_id":7})");
  ASSERT_TRUE(description.ok());
  ModelDescription& d = *description;
  EXPECT_TRUE(ApplyGenerationConfig("g", R"({"temperature":0.6})", &d).ok());
  EXPECT_THAT(d.eos_ids, ElementsAre(7));
  EXPECT_TRUE(
      ApplyGenerationConfig("g", R"({"eos_token_id":[2,99]})", &d).ok());
  EXPECT_THAT(d.eos_ids, ElementsAre(2, 99));
  EXPECT_TRUE(ApplyGenerationConfig("g", R"({"eos_token_id":5})", &d).ok());
  EXPECT_THAT(d.eos_ids, ElementsAre(5));
  EXPECT_EQ(ApplyGenerationConfig("g", R"({"eos_token_id":100})", &d).message(),
            "g: eos_token_id is not one or several ids below 100");
  EXPECT_EQ(ApplyGenerationConfig("g", "[]", &d).message(),
            "g: is not a JSON object");
}

}  // namespace
}  // namespace strata
