// Adapters made and merged by PEFT (tests/golden/adapters): the engine answers
// as PyTorch does, with the Hugging Face model and with its GGUF form.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/core/model/gguf_writer.h"
#include "tests/core/model/temp_files.h"
#include "tests/testing/golden.h"
#include "tests/testing/tiny_engine.h"

namespace strata {
namespace {

std::string AdapterOf(const std::string& model) {
  return "tests/golden/adapters/" + model;
}

// The largest difference of a log-probability of the prompt's tokens and of the
// 20 best at each position, as a part of what is allowed.
double WorstScore(const Golden& golden, const TinyEngine& tiny,
                  const std::string& spec) {
  Request request(tiny.Strategy(spec));
  request.kind = Request::Kind::kScore;
  request.prompt = golden.prompt();
  request.num_top_logprobs = 20;
  EXPECT_TRUE(FitRequest(tiny.engine->limits(), {}, &request).ok());
  const CollectingSink::Sequence got = tiny.Run(request)->Get(0);
  EXPECT_EQ(got.logprobs.size(), request.prompt.size() - 1);
  double worst = 0;
  for (size_t i = 0; i < got.logprobs.size(); ++i) {
    const std::vector<double> want = golden.Logprobs("logits/" + spec, i);
    const auto compare = [&](int32_t token, float logprob) {
      const double error = std::abs(logprob - want[token]) /
                           (1e-6 + 3e-4 * std::abs(want[token]));
      worst = error <= worst ? worst : error;  // NaN is the worst
    };
    compare(got.logprobs[i].token, got.logprobs[i].logprob);
    for (int k = 0; k < 20; ++k) {
      compare(got.logprobs[i].top[k].token, got.logprobs[i].top[k].logprob);
    }
  }
  return worst;
}

class LoraGoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(LoraGoldenTest, ScoresAreThoseOfPyTorch) {
  const std::string model = GetParam();
  const Golden golden("adapters/" + model);
  const TinyEngine plain({.model = model});
  const TinyEngine adapted({.model = model, .adapter = AdapterOf(model)});
  for (const auto& [spec, plan] : golden.plans()) {
    SCOPED_TRACE(spec);
    EXPECT_LE(WorstScore(golden, adapted, spec), 1.0);
    EXPECT_GT(WorstScore(golden, plain, spec), 100.0);
  }
}

// Whose rows of Q and K lie in another order, for llama.
TEST_P(LoraGoldenTest, GgufScoresAreThoseOfPyTorch) {
  const std::string model = GetParam();
  const Golden golden("adapters/" + model);
  const TempDirectory directory;
  const std::string path = directory.Path(model + ".gguf");
  ASSERT_TRUE(
      WriteGguf("tests/golden/" + model, {.type = DType::kF32}, path).ok());
  const TinyEngine adapted({.model = path, .adapter = AdapterOf(model)});
  for (const auto& [spec, plan] : golden.plans()) {
    SCOPED_TRACE(spec);
    EXPECT_LE(WorstScore(golden, adapted, spec), 1.0);
  }
}

// An adapter is merged before a matrix is split.
TEST(LoraGoldenSplitTest, ScoresAreThoseOfPyTorch) {
  const std::string model = "llama-tied";
  const Golden golden("adapters/" + model);
  const TempDirectory directory;
  const std::string gguf = directory.Path(model + ".gguf");
  ASSERT_TRUE(
      WriteGguf("tests/golden/" + model, {.type = DType::kF32}, gguf).ok());
  for (const std::string& path : {model, gguf}) {
    SCOPED_TRACE(path);
    const TinyEngine adapted(
        {.model = path, .adapter = AdapterOf(model), .num_ranks = 2});
    EXPECT_LE(WorstScore(golden, adapted, "full"), 1.0);
    EXPECT_LE(WorstScore(golden, adapted, "every=2"), 1.0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LoraGoldenTest,
                         testing::Values("llama-tied", "qwen3-qknorm"));

}  // namespace
}  // namespace strata
