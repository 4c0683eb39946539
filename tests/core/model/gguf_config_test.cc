#include "core/model/gguf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/rope.h"
#include "tests/core/model/file_bytes.h"
#include "tests/core/model/quantize.h"
#include "tests/core/model/temp_files.h"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using B = GgufBuilder;

// The keys of a small model; each may be left out or replaced.
struct Keys {
  std::string architecture = "llama";
  std::string without = "";  // this key
  std::function<void(B*)> change = [](B*) {};

  std::string Build() const {
    B builder;
    const std::string p = architecture + ".";
    if (without != "general.architecture")
      builder.String("general.architecture", architecture);
    const auto u32 = [&](const std::string& key, uint32_t value) {
      if (key != without) builder.U32(p + key, value);
    };
    u32("block_count", 3);
    u32("context_length", 512);
    u32("embedding_length", 48);
    u32("feed_forward_length", 96);
    u32("attention.head_count", 6);
    u32("attention.head_count_kv", 2);
    if (without != "eps")
      builder.F32(p + "attention.layer_norm_rms_epsilon", 1e-5f);
    if (without != "token_embd.weight") {
      builder.Tensor("token_embd.weight", {48, 100}, 0,
                     std::string(48 * 100 * 4, '\0'));
    }
    change(&builder);
    return builder.Build();
  }
};

class GgufConfigTest : public ::testing::Test {
 protected:
  absl::StatusOr<ModelDescription> Parse(const Keys& keys) {
    path_ = directory_.Write("x.gguf", keys.Build());
    file_ = MappedFile::Open(path_).value();
    auto gguf = ReadGguf(*file_);
    if (!gguf.ok()) return gguf.status();
    return ParseGgufConfig(*gguf);
  }
  TempDirectory directory_;
  std::string path_;
  std::unique_ptr<MappedFile> file_;
};

TEST_F(GgufConfigTest, ReadsLlamaWithDefaults) {
  auto llama = Parse({});
  ASSERT_TRUE(llama.ok()) << llama.status();
  const ModelConfig& config = llama->config;
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.num_layers, 3);
  EXPECT_EQ(config.hidden_size, 48);
  EXPECT_EQ(config.intermediate_size, 96);
  EXPECT_EQ(config.num_heads, 6);
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.vocab_size, 100);
  EXPECT_EQ(config.max_positions, 512);
  EXPECT_EQ(config.rms_norm_eps, 1e-5f);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_EQ(config.rope_inv_freq, RopeInvFreq(10000.0f, 8));
  EXPECT_FALSE(llama->has_qkv_bias);
  EXPECT_EQ(Parse({.without = "attention.head_count_kv"})->config.num_kv_heads,
            6);
}

TEST_F(GgufConfigTest, ReadsOtherArchitectures) {
  EXPECT_TRUE(Parse({.architecture = "qwen2"})->has_qkv_bias);
  auto qwen3 = Parse({.architecture = "qwen3", .change = [](B* b) {
                        b->U32("qwen3.attention.key_length", 16)
                            .U32("qwen3.attention.value_length", 16)
                            .U32("qwen3.rope.dimension_count", 16)
                            .F32("qwen3.rope.freq_base", 1e6f)
                            .Tensor("output.weight", {1}, 0, "1234");
                      }});
  ASSERT_TRUE(qwen3.ok()) << qwen3.status();
  EXPECT_TRUE(qwen3->has_qk_norm);
  EXPECT_EQ(qwen3->config.head_dim, 16);
  EXPECT_FALSE(qwen3->config.tied_embeddings);
  EXPECT_EQ(qwen3->config.rope_inv_freq, RopeInvFreq(1e6f, 16));
}

TEST_F(GgufConfigTest, ReadsRopeScaling) {
  const std::vector<float> plain = RopeInvFreq(10000.0f, 8);
  EXPECT_EQ(Parse({.change =
                       [](B* b) {
                         b->String("llama.rope.scaling.type", "none")
                             .F32("llama.rope.scaling.factor", 4.0f);
                       }})
                ->config.rope_inv_freq,
            plain);
  EXPECT_EQ(Parse({.change =
                       [](B* b) {
                         b->String("llama.rope.scaling.type", "linear")
                             .F32("llama.rope.scaling.factor", 4.0f);
                       }})
                ->config.rope_inv_freq,
            ScaleLinear(4.0, plain));
  EXPECT_EQ(
      Parse({.change = [](B* b) { b->F32("llama.rope.scale_linear", 2.0f); }})
          ->config.rope_inv_freq,
      ScaleLinear(2.0, plain));
  const std::vector<float> factors = {1.0f, 2.0f, 3.0f, 8.0f};
  std::vector<float> want = plain;
  for (size_t i = 0; i < want.size(); ++i) want[i] /= factors[i];
  EXPECT_EQ(Parse({.change =
                       [&](B* b) {
                         b->Tensor("rope_freqs.weight", {4}, 0,
                                   Quantize(DType::kF32, factors));
                       }})
                ->config.rope_inv_freq,
            want);
}

TEST_F(GgufConfigTest, AllowsAWindowAsLongAsTheContext) {
  EXPECT_TRUE(Parse({.change = [](B* b) {
                b->U32("llama.attention.sliding_window", 512);
              }}).ok());
  EXPECT_TRUE(Parse({.change = [](B* b) {
                b->U32("llama.attention.sliding_window", 0);
              }}).ok());
}

TEST_F(GgufConfigTest, Refuses) {
  constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    Keys keys;
    const char* message;
    absl::StatusCode code;
  };
  const auto with = [](std::function<void(B*)> change) {
    return Keys{.change = std::move(change)};
  };
  const std::vector<Case> cases = {
      {{.architecture = "gemma3"},
       "general.architecture \"gemma3\" is not supported",
       kUnimplemented},
      {{.without = "general.architecture"},
       "general.architecture is missing",
       kInvalid},
      {with([](B* b) { b->String("general.type", "adapter"); }), "\"adapter\"",
       kUnimplemented},
      {with([](B* b) { b->Pair("split.count", B::kU16, Bytes<uint16_t>(2)); }),
       "one of 2 parts", kUnimplemented},
      {with([](B* b) { b->U32("llama.attention.sliding_window", 511); }),
       "sliding_window 511", kUnimplemented},
      {with([](B* b) { b->U32("llama.expert_count", 8); }), "expert_count 8",
       kUnimplemented},
      {with([](B* b) { b->Bool("llama.attention.causal", false); }), "causal",
       kUnimplemented},
      {with([](B* b) { b->U32("llama.rope.dimension_count", 4); }),
       "dimension_count 4", kUnimplemented},
      {with([](B* b) { b->U32("llama.attention.value_length", 4); }),
       "value_length 4", kUnimplemented},
      {with([](B* b) { b->String("llama.rope.scaling.type", "yarn"); }),
       "\"yarn\"", kUnimplemented},
      {with([](B* b) { b->F32("llama.rope.scaling.factor", 0.0f); }),
       "factor is 0", kInvalid},
      {with([=](B* b) { b->F32("llama.rope.freq_base", nan); }),
       "freq_base is nan", kInvalid},
      {with([](B* b) {
         b->Tensor("rope_freqs.weight", {3}, 0, std::string(12, '\1'));
       }),
       "rope_freqs.weight is F32 [3], expected F32 [4]", kInvalid},
      {with([](B* b) {
         b->Tensor("rope_freqs.weight", {8}, 1, std::string(16, '\1'));
       }),
       "rope_freqs.weight is F16", kInvalid},
      {with([](B* b) {
         b->Tensor("rope_freqs.weight", {4}, 0, std::string(16, '\0'));
       }),
       "rope_freqs.weight[0] is 0", kInvalid},
      {with([](B* b) { b->U32("llama.attention.key_length", 7); }), "odd",
       kInvalid},
      {with([](B* b) { b->U32("llama.attention.key_length", 1u << 31); }),
       "not an integer", kInvalid},
      {{.without = "block_count"}, "llama.block_count is missing", kInvalid},
      {{.without = "block_count",
        .change = [](B* b) { b->U32("llama.block_count", 100000); }},
       "num_layers is 100000",
       kInvalid},
      {{.without = "attention.head_count",
        .change =
            [](B* b) {
              b->Int32s("llama.attention.head_count", {6, 6, 6});
            }},
       "llama.attention.head_count is not an integer",
       kInvalid},
      {{.without = "attention.head_count",
        .change = [](B* b) { b->U32("llama.attention.head_count", 5); }},
       "llama.embedding_length 48 is not a multiple",
       kInvalid},
      {{.without = "attention.head_count",
        .change = [](B* b) { b->U32("llama.attention.head_count", 0); }},
       "is not a multiple",
       kInvalid},
      {{.without = "eps"}, "layer_norm_rms_epsilon is missing", kInvalid},
      {{.without = "eps",
        .change =
            [=](B* b) {
              b->F32("llama.attention.layer_norm_rms_epsilon", nan);
            }},
       "rms_norm_eps is nan",
       kInvalid},
      {{.without = "eps",
        .change =
            [](B* b) {
              b->F32("llama.attention.layer_norm_rms_epsilon", 0.0f);
            }},
       "rms_norm_eps is 0",
       kInvalid},
      {{.without = "token_embd.weight"},
       "token_embd.weight is missing",
       kInvalid},
  };
  for (const Case& c : cases) {
    const absl::Status status = Parse(c.keys).status();
    EXPECT_EQ(status.code(), c.code) << c.message << status;
    EXPECT_THAT(std::string(status.message()), StartsWith(path_ + ": "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace strata
