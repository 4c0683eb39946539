// Models split over several ranks: what they answer is what one device does,
// but for the rounding of sums.  Golden models split stand in golden_test.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/core/model/gguf_writer.h"
#include "tests/core/model/random_model.h"
#include "tests/core/model/temp_files.h"
#include "tests/testing/golden.h"
#include "tests/testing/tiny_engine.h"

namespace strata {
namespace {

// All that a layer may have, in sizes that no number of ranks divides: MLP and
// vocabulary in units of 32 (4.5 and 3.2).
constexpr char kConfig[] =
    R"({"model_type": "qwen3", "num_hidden_layers": 4, "hidden_size": 64,
        "intermediate_size": 144, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 16, "vocab_size": 101,
        "max_position_embeddings": 256, "rms_norm_eps": 1e-6,
        "attention_bias": true, "tie_word_embeddings": false,
        "rope_theta": 10000.0, "eos_token_id": 1})";

std::vector<int32_t> Prompt(int vocab) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < 40; ++i) prompt.push_back((i * i * 7 + 3 * i) % vocab);
  return prompt;
}

// Log-probabilities of the prompt's tokens and of the 20 best at each position.
std::vector<float> Scores(const TinyEngine& tiny, const std::string& spec) {
  Request request(tiny.Strategy(spec));
  request.kind = Request::Kind::kScore;
  request.prompt = Prompt(tiny.checkpoint->config.vocab_size);
  request.num_top_logprobs = 20;
  EXPECT_TRUE(FitRequest(tiny.engine->limits(), {}, &request).ok());
  std::vector<float> scores;
  for (const auto& token : tiny.Run(request)->Get(0).logprobs) {
    scores.push_back(token.logprob);
    for (int k = 0; k < token.num_top; ++k) {
      scores.push_back(token.top[k].logprob);
    }
  }
  return scores;
}

void ExpectNear(const std::vector<float>& got, const std::vector<float>& want,
                double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  ASSERT_GT(got.size(), 0u);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(std::abs(got[i] - want[i]) <=
                tolerance * (1 + std::abs(want[i])))
        << i << ": got " << got[i] << ", want " << want[i];
  }
}

double MeanDifference(const std::vector<float>& a,
                      const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

TEST(ParallelTest, ScoresAreThoseOfOneDevice) {
  const TempDirectory directory;
  WriteRandomModel(kConfig, 5, directory.path());
  for (const int budget : {512, 7}) {
    const TinyEngine one(
        {.model = directory.path(), .max_batched_tokens = budget});
    for (const int num_ranks : {2, 4}) {
      const TinyEngine split({.model = directory.path(),
                              .threads = 4,
                              .num_ranks = num_ranks,
                              .max_batched_tokens = budget});
      EXPECT_EQ(split.page_bytes, one.page_bytes);
      for (const char* spec : {"full", "every=2", "sources=0,0,2,0"}) {
        SCOPED_TRACE(testing::Message() << num_ranks << " ranks, " << spec);
        ExpectNear(Scores(split, spec), Scores(one, spec), 2e-5);
      }
    }
  }
}

// Columns are cut between blocks; Q and K of a llama are interleaved.
TEST(ParallelTest, GgufScoresAreThoseOfOneDevice) {
  const TempDirectory directory;
  for (const DType type :
       {DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
    SCOPED_TRACE(DTypeName(type));
    const std::string path = directory.Path(DTypeName(type));
    ASSERT_TRUE(
        WriteGguf("tests/golden/llama-tied", {.type = type}, path + ".gguf")
            .ok());
    for (const bool exact_f32 : {true, false}) {
      const TinyEngine one({.model = path + ".gguf", .exact_f32 = exact_f32});
      const TinyEngine split(
          {.model = path + ".gguf", .exact_f32 = exact_f32, .num_ranks = 2});
      const std::vector<float> want = Scores(one, "every=2");
      const std::vector<float> got = Scores(split, "every=2");
      if (exact_f32) {
        ExpectNear(got, want, 2e-4);
      } else {
        // A sum that is cut may round to another bf16 or int8 later on.
        EXPECT_LE(MeanDifference(got, want), 0.2);
      }
    }
  }
}

// Prompts in pieces beside rows that decode, under all strategies at once.
TEST(ParallelTest, MixedBatchesGoTheWayOfPyTorch) {
  const Golden golden("llama-tied");
  for (const int num_ranks : {1, 2}) {
    const TinyEngine tiny(
        {.num_ranks = num_ranks, .max_sequences = 9, .max_batched_tokens = 11});
    std::vector<std::string> specs;
    std::vector<std::vector<int32_t>> wants;
    std::vector<std::shared_ptr<CollectingSink>> sinks;
    for (const auto& [spec, plan] : golden.plans()) {
      if (!plan.IsClear()) continue;
      specs.push_back(spec);
      wants.push_back(plan.greedy);
      sinks.push_back(std::make_shared<CollectingSink>());
      tiny.engine->Submit(
          tiny.Greedy(golden.prompt(), spec, wants.back().size()),
          sinks.back());
    }
    EXPECT_GE(specs.size(), 4u);
    for (size_t i = 0; i < sinks.size(); ++i) {
      SCOPED_TRACE(specs[i]);
      ASSERT_TRUE(sinks[i]->Wait().ok());
      EXPECT_EQ(sinks[i]->Get(0).tokens, wants[i]);
    }
  }
}

// Ranks draw the same tokens, from the logits of all of them.
TEST(ParallelTest, SampledTokensAreThoseOfOneDevice) {
  const Golden golden("qwen2-bias");
  const auto sample = [&](int num_ranks) {
    const TinyEngine tiny({.model = "qwen2-bias", .num_ranks = num_ranks});
    Request request = tiny.Greedy(golden.prompt(), "every=2", 40);
    request.sampling.temperature = 0.8f;
    request.sampling.top_p = 0.9f;
    request.sampling.seed = 7;
    return tiny.Run(request)->Get(0).tokens;
  };
  EXPECT_EQ(sample(2), sample(1));
}

}  // namespace
}  // namespace strata
