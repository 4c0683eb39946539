#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/core/model/lora_adapter_fixture.h"

namespace strata {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(LoraAdapterTest, UpdatesOfNoUseAreRefused) {
  adapter_.config["lora_alpha"] = 1e38;
  ExpectRefused({"lora_alpha / r = 3.33333e+37", "allowed are up to 1e+06"});
}

TEST_F(LoraAdapterTest, AMissingHalfOfAPairIsNamed) {
  TinyAdapter whole = adapter_;
  for (const char* name : {"lora_A", "lora_B"}) {
    adapter_ = whole;
    adapter_.tensors.erase("base_model.model.model.layers.1.mlp.down_proj." +
                           std::string(name) + ".weight");
    ExpectRefused({"layers.1.mlp.down_proj.lora_A.weight\"", " has no ",
                   "layers.1.mlp.down_proj.lora_B.weight\""});
  }
}

TEST_F(LoraAdapterTest, WrongShapesAreNamed) {
  struct Case {
    const char* name;
    std::vector<int64_t> shape;
    const char* says;
  };
  const TinyAdapter whole = adapter_;
  for (const Case& c : {
           Case{"self_attn.q_proj.lora_A.weight", {3, 9}, "expected [3, 8]"},
           {"self_attn.q_proj.lora_A.weight", {8, 3}, "expected [3, 8]"},
           {"self_attn.q_proj.lora_A.weight", {4, 8}, "expected [3, 8]"},
           {"self_attn.q_proj.lora_A.weight", {24}, "expected [3, 8]"},
           {"self_attn.q_proj.lora_A.weight", {}, "expected [3, 8]"},
           {"self_attn.q_proj.lora_B.weight", {12, 3}, "expected [24, 3]"},
           {"mlp.down_proj.lora_B.weight", {8, 2}, "expected [8, 3]"},
           {"input_layernorm.weight", {6}, "expected [8]"},
           {"input_layernorm.weight", {1, 8}, "expected [8]"},
           {"mlp.up_proj.weight", {12}, "expected [12, 8]"},
       }) {
    adapter_ = whole;
    adapter_.Add(Layer1(c.name), c.shape);
    ExpectRefused({c.name, c.says});
  }
}

TEST_F(LoraAdapterTest, WhatTheModelDoesNotHaveIsNamed) {
  const TinyAdapter whole = adapter_;
  for (const char* name :
       {"model.layers.2.self_attn.q_proj.lora_A.weight",
        "model.layers.01.self_attn.q_proj.lora_A.weight",
        "model.layers.1.self_attn.qkv_proj.lora_A.weight",
        "model.layers.1.input_layernorm.lora_A.weight",
        "model.embed_tokens.lora_A.weight",
        "model.layers.1.self_attn.q_norm.weight",
        "model.layers.1.self_attn.q_proj.bias", "score.weight",
        "model.layers.1.self_attn.q_proj.lora_magnitude_vector",
        "model.layers.1.self_attn.q_proj.lora_A.default.weight",
        "model.layers.1.self_attn.q_proj.lora_B.bias",
        "model.embed_tokens.lora_embedding_A"}) {
    adapter_ = whole;
    adapter_.Add(name, {3, 8});
    if (std::string(name).ends_with("lora_A.weight")) {
      std::string other = name;
      other.replace(other.size() - 8, 1, "B");
      adapter_.Add(other, {24, 3});
    }
    ExpectRefused({name, "llama of 2 layers"});
  }
  adapter_ = whole;
  adapter_.tensors["model.layers.1.self_attn.v_proj.lora_A.weight"] =
      adapter_.tensors.begin()->second;
  ExpectRefused({"model.layers.1.self_attn.v_proj"});
}

TEST_F(LoraAdapterTest, NumbersMustBeFinite) {
  const TinyAdapter whole = adapter_;
  const std::string prefix = TinyAdapter::kPrefix;
  for (const std::string& name : {Layer1("mlp.down_proj.lora_A.weight"),
                                  Layer1("mlp.down_proj.lora_B.weight"),
                                  Layer1("post_attention_layernorm.weight")}) {
    for (const float value : {std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()}) {
      adapter_ = whole;
      adapter_.Add(Layer1("post_attention_layernorm.weight"), {8});
      adapter_.tensors[prefix + name].bytes.replace(20, 4, Bytes(value));
      ExpectRefused({name, std::isnan(value) ? "a NaN" : "an infinity"});
    }
  }
  adapter_ = whole;
  for (const char* half : {"lora_A", "lora_B"}) {
    adapter_.tensors[prefix + Layer1("mlp.down_proj.") + half + ".weight"]
        .bytes.replace(20, 4, Bytes(1e30f));
  }
  ExpectRefused({"mlp.down_proj.lora_A.weight", "allowed are up to 1e+06"});
}

TEST_F(LoraAdapterTest, SavedModulesMustBeInTheFile) {
  adapter_.config["modules_to_save"] = {"embed_tokens"};
  ExpectRefused({"lacks", "model.embed_tokens.weight", "\"embed_tokens\""});
  adapter_.config["modules_to_save"] = {"lm_head"};
  ExpectRefused({"lacks", "lm_head.weight"});
  adapter_.config["modules_to_save"] = {"input_layernorm"};
  adapter_.Add(Layer1("input_layernorm.weight"), {8});
  ExpectRefused({"lacks", "model.layers.0.input_layernorm.weight"});
  adapter_.config["modules_to_save"] = {"score"};
  ExpectRefused({"\"score\"", "no module of the model"});
}

TEST_F(LoraAdapterTest, OtherTypesAreRefusedByName) {
  const std::string name =
      TinyAdapter::kPrefix + Layer1("mlp.down_proj.lora_A.weight");
  adapter_.tensors[name].type = "I32";
  const absl::Status status = Refusal();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(name), HasSubstr("I32"),
                    HasSubstr("F32, F16 and BF16 are")));
}

TEST_F(LoraAdapterTest, FilesThatAreNotThere) {
  Checkpoint checkpoint = LoadHuggingFace(TinyModel::HuggingFace("llama"));
  const auto apply = [&](const std::string& path) {
    return ApplyLoraAdapter(path, false, &checkpoint).status();
  };
  absl::Status status = apply(adapter_files_.path());
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("adapter_config.json"));
  adapter_files_.Write("adapter_config.json", adapter_.config.dump());
  status = apply(adapter_files_.path());
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("adapter_model.safetensors"));
  EXPECT_FALSE(apply(adapter_files_.Path("adapter_config.json")).ok());
}

TEST_F(LoraAdapterTest, CutAndEmptyFiles) {
  const std::string file = adapter_.SafetensorsFile();
  Checkpoint checkpoint = LoadHuggingFace(TinyModel::HuggingFace("llama"));
  adapter_.Write(adapter_files_);
  for (size_t size = 0; size < file.size(); size += 1 + size / 16) {
    adapter_files_.Write("adapter_model.safetensors", file.substr(0, size));
    const absl::Status status =
        ApplyLoraAdapter(adapter_files_.path(), false, &checkpoint).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << size << status;
    EXPECT_THAT(std::string(status.message()),
                StartsWith(adapter_files_.Path("adapter_model.safetensors")));
  }
  adapter_.tensors.clear();
  ExpectRefused({"has no tensors"});
}

}  // namespace
}  // namespace strata
