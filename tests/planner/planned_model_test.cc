#include "planner/planned_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "planner/public_shapes.h"
#include "tests/core/model/temp_files.h"
#include "tests/core/model/tiny_model.h"

namespace strata {
namespace {

using ::testing::HasSubstr;

// What these models are known to have.
TEST(PublicShapesTest, HaveTheParametersOfTheModels) {
  struct Row {
    const char* name;
    int64_t num_parameters;
  };
  for (const Row& row :
       {Row{"llama-3.1-8b", 8'030'261'248},
        Row{"llama-3.1-70b", 70'553'706'496},
        Row{"llama-3.2-1b", 1'235'814'400},
        Row{"mistral-7b-v0.3", 7'248'023'552},
        Row{"qwen2.5-7b-instruct", 7'615'616'512},
        Row{"qwen3-0.6b", 596'049'920}, Row{"qwen3-1.7b", 1'720'574'976},
        Row{"qwen3-8b", 8'190'735'360}, Row{"qwen3-32b", 32'762'123'264},
        Row{"smollm2-135m", 134'515'008}, Row{"smollm2-1.7b", 1'711'376'384}}) {
    SCOPED_TRACE(row.name);
    const auto shape = FindPublicShape(row.name);
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_TRUE(shape->config.ValidateDimensions().ok());
    const auto model = ModelOfShape(row.name, *shape, DType::kBF16);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(NumParameters(*model), row.num_parameters);
    EXPECT_EQ(model->checkpoint.weight_bytes, 2 * row.num_parameters);
  }
  EXPECT_THAT(std::string(FindPublicShape("gpt").status().message()),
              HasSubstr("\"gpt\" is no shape: allowed are llama-3.1-8b, "));
}

TEST(ReadModelTest, CountsTheTensorsOfAMixedFile) {
  TinyModel tiny = TinyModel::Gguf("llama");
  int64_t bytes = 0, elements = 0;
  for (auto& [name, tensor] : tiny.tensors) {
    if (name.find("ffn_") != std::string::npos && tensor.shape.size() == 2) {
      tensor.type = "F16";
    }
    if (name == "output.weight") tensor.type = "BF16";
    int64_t count = 1;
    for (const int64_t dim : tensor.shape) count *= dim;
    elements += count;
    bytes += count * (tensor.type == "F32" ? 4 : 2);
  }
  tiny.tensors["unused.weight"] = {.type = "Q4_K", .shape = {2, 256}};
  const TempDirectory directory;
  const auto model =
      ReadModel(directory.Write("tiny.gguf", tiny.GgufFile()), std::nullopt);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->name, "tiny");
  EXPECT_TRUE(model->has_files);
  EXPECT_EQ(model->checkpoint.weight_bytes, bytes);
  EXPECT_EQ(NumParameters(*model), elements);
}

// A directory of which the weights are not there yet is planned as if they
// were: for every architecture, with biases, norms of Q and K, tied or not.
TEST(ReadModelTest, ConfigAloneIsAsGoodAsTheWeights) {
  for (const char* golden : {"llama-tied", "llama3-ropescaled", "mistral",
                             "qwen2-bias", "qwen3-qknorm"}) {
    SCOPED_TRACE(golden);
    const std::string path = std::string("tests/golden/") + golden;
    const auto whole = ReadModel(path, std::nullopt);
    ASSERT_TRUE(whole.ok()) << whole.status();
    const TempDirectory directory;
    directory.Write("config.json", ReadFile(path + "/config.json"));
    const auto shape =
        ReadModel(directory.path() + "/", whole->checkpoint.head.type);
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_FALSE(shape->has_files);
    EXPECT_EQ(NumParameters(*shape), NumParameters(*whole));
    EXPECT_EQ(shape->checkpoint.weight_bytes, whole->checkpoint.weight_bytes);
    EXPECT_EQ(shape->checkpoint.weight_format, whole->checkpoint.weight_format);
    EXPECT_EQ(shape->checkpoint.config.max_positions,
              whole->checkpoint.config.max_positions);
  }
}

TEST(ReadModelTest, WeightTypes) {
  const TempDirectory directory;
  directory.Write("config.json",
                  ReadFile("tests/golden/qwen2-bias/config.json"));
  const auto bf16 = ReadModel(directory.path(), std::nullopt);
  const auto q4 = ReadModel(directory.path(), DType::kQ4_0);
  ASSERT_TRUE(bf16.ok() && q4.ok());
  EXPECT_EQ(bf16->checkpoint.weight_format, "BF16");
  EXPECT_EQ(q4->checkpoint.layers[4].down.NumBytes(), 96 * 4 * 18);
  EXPECT_EQ(q4->checkpoint.layers[4].bk.NumBytes(), 32 * 4);  // f32

  ModelDescription odd = *FindPublicShape("smollm2-135m");
  odd.config.intermediate_size = 1530;
  EXPECT_THAT(
      std::string(ModelOfShape("odd", odd, DType::kQ8_0).status().message()),
      HasSubstr("rows of 1530 elements are no whole blocks of 32, as Q8_0"));
}

TEST(ReadModelTest, RefusesInOneLine) {
  const TempDirectory directory;
  const auto error = [](const std::string& path, std::optional<DType> type) {
    const auto model = ReadModel(path, type);
    EXPECT_FALSE(model.ok());
    const std::string message(model.status().message());
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  };
  EXPECT_THAT(error(directory.Path("none"), std::nullopt), HasSubstr("none"));
  EXPECT_THAT(error(directory.path(), std::nullopt), HasSubstr("config.json"));
  EXPECT_THAT(error("tests/golden/mistral", DType::kQ8_0),
              HasSubstr("--weight_type is for models without weights"));
  directory.Write("config.json", R"({"model_type":"mamba"})");
  EXPECT_THAT(error(directory.path(), std::nullopt), HasSubstr("\"mamba\""));
}

}  // namespace
}  // namespace strata
