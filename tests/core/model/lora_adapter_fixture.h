#ifndef TESTS_CORE_MODEL_LORA_ADAPTER_FIXTURE_H_
#define TESTS_CORE_MODEL_LORA_ADAPTER_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/model/lora_adapter.h"
#include "tests/core/model/temp_files.h"
#include "tests/core/model/tiny_adapter.h"
#include "tests/core/model/tiny_model.h"

namespace strata {

inline std::string Layer1(const std::string& name) {
  return "model.layers.1." + name;
}

// Adapters of the model of TinyModel: hidden 8, intermediate 12, 24 outputs of
// Q, 12 of K and V, heads of 6, vocabulary 5, two layers.
class LoraAdapterTest : public testing::Test {
 protected:
  LoraAdapterTest() {
    adapter_.AddPair(Layer1("self_attn.q_proj"), 24, 8, 3);
    adapter_.AddPair(Layer1("mlp.down_proj"), 8, 12, 3);
  }

  Checkpoint LoadHuggingFace(const TinyModel& model) {
    model_files_.Write("config.json", model.ConfigJson());
    model_files_.Write("model.safetensors", model.SafetensorsFile());
    return Loaded(model_files_.path());
  }
  Checkpoint LoadGguf(const TinyModel& model) {
    return Loaded(model_files_.Write("m.gguf", model.GgufFile()));
  }
  Checkpoint Loaded(const std::string& path) {
    auto checkpoint = LoadCheckpoint(path);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return *std::move(checkpoint);
  }

  absl::StatusOr<AdapterSummary> Apply(Checkpoint* checkpoint,
                                       bool exact = false) {
    adapter_.Write(adapter_files_);
    return ApplyLoraAdapter(adapter_files_.path(), exact, checkpoint);
  }

  // The error of the adapter as it is, for a llama model.
  absl::Status Refusal() {
    Checkpoint checkpoint = LoadHuggingFace(TinyModel::HuggingFace("llama"));
    return Apply(&checkpoint).status();
  }
  void ExpectRefused(const std::vector<std::string>& says) {
    const absl::Status status = Refusal();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const std::string message(status.message());
    EXPECT_THAT(message, testing::StartsWith(adapter_files_.path()));
    EXPECT_THAT(message, testing::Not(testing::HasSubstr("\n")));
    for (const std::string& part : says)
      EXPECT_THAT(message, testing::HasSubstr(part));
  }

  TempDirectory model_files_, adapter_files_;
  TinyAdapter adapter_;
};

}  // namespace strata

#endif  // TESTS_CORE_MODEL_LORA_ADAPTER_FIXTURE_H_
