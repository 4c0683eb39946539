// The engine over CUDA backends whose weights are fp8, against PyTorch, and
// against exact products with the same rounded weights.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/pack.h"
#include "kernels/fp8.h"
#include "kernels/parallel/parallel_backend.h"
#include "tests/kernels/cuda/collectives.h"
#include "tests/kernels/cuda/golden_scores.h"
#include "tests/testing/forwarding_backend.h"
#include "tests/testing/golden.h"
#include "tests/testing/tiny_engine.h"

namespace strata {
namespace {

// Computes in f32 with weights rounded to fp8, as CudaBackend packs them.
class RoundedBackend final : public ForwardingBackend {
 public:
  RoundedBackend()
      : ForwardingBackend(std::make_unique<cpu::CpuBackend>(
            cpu::CpuOptions{.exact_f32 = true})) {}

  std::unique_ptr<Matrix> Pack(const WeightView& view) override {
    std::vector<std::byte> data(view.rows * view.cols);
    std::vector<float> scales(view.rows);
    cuda::PackRows(view, cuda::WeightFormat::kFp8, 0, view.rows, data.data(),
                   reinterpret_cast<std::byte*>(scales.data()));
    std::vector<float> values(data.size());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = scales[i / view.cols] * ToFloat(static_cast<Fp8>(data[i]));
    }
    return ForwardingBackend::Pack(
        {.data = reinterpret_cast<const std::byte*>(values.data()),
         .type = DType::kF32,
         .rows = view.rows,
         .cols = view.cols});
  }
};

struct Case {
  std::string model;
  int num_ranks;
};

class Fp8WeightsTest : public testing::TestWithParam<Case> {
 protected:
  static std::unique_ptr<Backend> MakeRank(
      int rank, std::unique_ptr<cuda::Collective> collective) {
    auto backend = cuda::CudaBackend::Create(rank, {.fp8_weights = true});
    EXPECT_TRUE(backend.ok()) << backend.status();
    if (collective != nullptr) {
      (*backend)->UseCollective(std::move(collective));
    }
    return *std::move(backend);
  }

  void SetUp() override {
    const int num_ranks = GetParam().num_ranks;
    if (num_ranks == 1) {
      make_backend_ = [] { return MakeRank(0, nullptr); };
      return;
    }
    auto made = cuda::MakeCollectives(num_ranks);
    if (!made.ok()) GTEST_SKIP() << made.status().message();
    collectives_ = *std::move(made);
    make_backend_ = [this] {
      auto ranks = ParallelBackend::Create(
          GetParam().num_ranks, ParallelBackend::Memory::kOfEach,
          [this](int rank) -> absl::StatusOr<std::unique_ptr<Backend>> {
            return MakeRank(rank, std::move(collectives_[rank]));
          });
      EXPECT_TRUE(ranks.ok()) << ranks.status();
      return *std::move(ranks);
    };
  }

  TinyEngine MakeEngine() const {
    return TinyEngine(
        {.model = GetParam().model, .make_backend = make_backend_});
  }

  TinyEngine MakeRounded() const {
    return TinyEngine({.model = GetParam().model, .make_backend = [] {
                         return std::make_unique<RoundedBackend>();
                       }});
  }

  std::function<std::unique_ptr<Backend>()> make_backend_;
  std::vector<std::unique_ptr<cuda::Collective>> collectives_;  // by rank
};

// Log-probabilities of the prompt's tokens but the first.
std::vector<double> Scores(const TinyEngine& tiny, const Golden& golden,
                           const std::string& spec) {
  std::vector<double> scores;
  for (const SampledToken& got : ScorePrompt(tiny, golden, spec).logprobs) {
    scores.push_back(got.logprob);
  }
  return scores;
}

std::vector<double> ScoresOfPyTorch(const Golden& golden,
                                    const std::string& spec) {
  const std::vector<int32_t> prompt = golden.prompt();
  std::vector<double> scores;
  for (size_t i = 0; i + 1 < prompt.size(); ++i) {
    scores.push_back(golden.Logprobs("logits/" + spec, i)[prompt[i + 1]]);
  }
  return scores;
}

double MeanDifference(const std::vector<double>& a,
                      const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

// Rounding the weights is what parts it from PyTorch; activations in bf16, and
// scales of a rank's own, are little beside.
TEST_P(Fp8WeightsTest, ScoresAreThoseOfTheRoundedModel) {
  const Golden golden(GetParam().model);
  const TinyEngine cuda = MakeEngine();
  const TinyEngine rounded = MakeRounded();
  for (const char* spec : {"full", "every=2"}) {
    SCOPED_TRACE(spec);
    const std::vector<double> got = Scores(cuda, golden, spec);
    const std::vector<double> want = Scores(rounded, golden, spec);
    const std::vector<double> exact = ScoresOfPyTorch(golden, spec);
    const double of_rounding = MeanDifference(want, exact);
    EXPECT_LE(MeanDifference(got, want), 0.2 * of_rounding);
    EXPECT_LE(MeanDifference(got, exact), 1.2 * of_rounding);
  }
}

// One row a step: its own kernels, in a graph.
TEST_P(Fp8WeightsTest, DecodesAsTheRoundedModel) {
  const Golden golden(GetParam().model);
  const TinyEngine cuda = MakeEngine();
  const TinyEngine rounded = MakeRounded();
  for (const char* spec : {"full", "every=2"}) {
    SCOPED_TRACE(spec);
    Request request = cuda.Greedy(golden.prompt(), spec, 12);
    request.num_top_logprobs = 0;
    const CollectingSink::Sequence got = cuda.Run(request)->Get(0);
    const CollectingSink::Sequence want = rounded.Run(request)->Get(0);
    for (size_t i = 0; i < got.tokens.size(); ++i) {
      EXPECT_NEAR(got.logprobs[i].logprob, want.logprobs[i].logprob, 0.5) << i;
      if (got.tokens[i] != want.tokens[i]) break;  // two that are as good
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Fp8WeightsTest,
    testing::Values(Case{"llama-tied", 1}, Case{"llama3-ropescaled", 1},
                    Case{"mistral", 1}, Case{"qwen2-bias", 1},
                    Case{"qwen3-qknorm", 1}, Case{"qwen2-bias", 2},
                    Case{"llama-tied", 2}));

}  // namespace
}  // namespace strata
