// Golden models split over several CUDA backends, against PyTorch: on the CPU
// through the simulator, or on GPUs over NCCL where there are enough.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/parallel/parallel_backend.h"
#include "tests/kernels/cuda/collectives.h"
#include "tests/kernels/cuda/golden_scores.h"
#include "tests/testing/golden.h"
#include "tests/testing/tiny_engine.h"

namespace strata {
namespace {

// A difference of two first log-probabilities that bf16 may turn round.
constexpr double kMargin = 0.5;

// Fails in one rank from the `num_sums`-th sum on.
class FailingCollective final : public cuda::Collective {
 public:
  FailingCollective(std::unique_ptr<Collective> collective, int num_sums)
      : collective_(std::move(collective)), num_sums_(num_sums) {}

  absl::Status AllReduce(float* x, int64_t count,
                         cudaStream_t stream) override {
    if (--num_sums_ < 0) return absl::InternalError("made to fail");
    return collective_->AllReduce(x, count, stream);
  }
  uint32_t Meet(uint32_t flags) override { return collective_->Meet(flags); }
  void Abort() override { collective_->Abort(); }

 private:
  const std::unique_ptr<Collective> collective_;
  int num_sums_;
};

struct Case {
  std::string model;
  int num_ranks;
  bool fp8_kv = false;
};

class ParallelCudaTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto collectives = cuda::MakeCollectives(GetParam().num_ranks);
    if (!collectives.ok()) {
      GTEST_SKIP() << collectives.status().message();
    }
    collectives_ = *std::move(collectives);
  }

  TinyEngine MakeEngine() {
    return TinyEngine(
        {.model = GetParam().model, .make_backend = [this] {
           const int num_ranks = GetParam().num_ranks;
           backends_.resize(num_ranks);
           auto ranks = ParallelBackend::Create(
               num_ranks, ParallelBackend::Memory::kOfEach,
               [this](int rank) -> absl::StatusOr<std::unique_ptr<Backend>> {
                 auto backend = cuda::CudaBackend::Create(
                     rank, {.fp8_kv = GetParam().fp8_kv});
                 EXPECT_TRUE(backend.ok()) << backend.status();
                 (*backend)->UseCollective(std::move(collectives_[rank]));
                 backends_[rank] = backend->get();
                 return *std::move(backend);
               });
           EXPECT_TRUE(ranks.ok()) << ranks.status();
           return *std::move(ranks);
         }});
  }

  std::vector<std::unique_ptr<cuda::Collective>> collectives_;  // by rank
  std::vector<cuda::CudaBackend*> backends_;                    // by rank
};

// Mean over the prompt of how far the log-probability of the token that comes
// is from PyTorch's.
double MeanDifference(const TinyEngine& tiny, const Golden& golden,
                      const std::string& spec) {
  const std::vector<int32_t> prompt = golden.prompt();
  const CollectingSink::Sequence got = ScorePrompt(tiny, golden, spec);
  double sum = 0;
  for (size_t i = 0; i < got.logprobs.size(); ++i) {
    const std::vector<double> want = golden.Logprobs("logits/" + spec, i);
    sum += std::abs(got.logprobs[i].logprob - want[prompt[i + 1]]);
  }
  return sum / static_cast<double>(got.logprobs.size());
}

// About as near to PyTorch in f32 as one CPU backend, which computes in bf16
// too: means of few numbers.  A cache of fp8 is rounded 16 times as coarsely.
TEST_P(ParallelCudaTest, ScoresAreThoseOfPyTorch) {
  const Golden golden(GetParam().model);
  const TinyEngine ranks = MakeEngine();
  const TinyEngine cpu({.model = GetParam().model, .exact_f32 = false});
  double ranks_sum = 0, cpu_sum = 0;
  for (const char* spec : {"full", "every=2"}) {
    SCOPED_TRACE(spec);
    const double difference = MeanDifference(ranks, golden, spec);
    EXPECT_LE(difference, 0.5);
    ranks_sum += difference;
    cpu_sum += MeanDifference(cpu, golden, spec);
  }
  EXPECT_LE(ranks_sum, (GetParam().fp8_kv ? 16 : 1) * 2.5 * cpu_sum);
}

// Decoded together, by graphs that hold the sums too.  What bf16 may turn round
// is run but not compared.
TEST_P(ParallelCudaTest, GraphsServeEveryMix) {
  const Golden golden(GetParam().model);
  const TinyEngine tiny = MakeEngine();
  std::vector<std::vector<int32_t>> wants;
  std::vector<bool> is_sure;
  std::vector<std::shared_ptr<CollectingSink>> sinks;
  for (const auto& [spec, plan] : golden.plans()) {
    wants.push_back(plan.greedy);
    wants.back().resize(12);
    is_sure.push_back(plan.min_margin >= kMargin);
    sinks.push_back(std::make_shared<CollectingSink>());
    tiny.engine->Submit(tiny.Greedy(golden.prompt(), spec, wants.back().size()),
                        sinks.back());
  }
  for (size_t i = 0; i < sinks.size(); ++i) {
    ASSERT_TRUE(sinks[i]->Wait().ok());
    const std::vector<int32_t> got = sinks[i]->Get(0).tokens;
    EXPECT_EQ(got.size(), wants[i].size());
    if (is_sure[i]) {
      EXPECT_EQ(got, wants[i]);
    }
  }
  for (const cuda::CudaBackend* backend : backends_) {
    EXPECT_GT(backend->num_graphs(), 0);
    EXPECT_EQ(backend->num_graphs(), backends_[0]->num_graphs());
  }
}

// A rank that fails ends the step of all: in the prompt, after the sums of a
// first step of one row, which the engine runs when it is made.
TEST_P(ParallelCudaTest, NoRankWaitsForOneThatHasFailed) {
  const Golden golden(GetParam().model);
  const int of_a_step = 2 * golden.plans().at("full").num_layers + 1;
  for (const int num_sums : {of_a_step, of_a_step + 3, 2 * of_a_step - 1}) {
    SCOPED_TRACE(num_sums);
    if (collectives_[0] == nullptr) {
      collectives_ = *cuda::MakeCollectives(GetParam().num_ranks);
    }
    collectives_[1] = std::make_unique<FailingCollective>(
        std::move(collectives_[1]), num_sums);
    const TinyEngine tiny = MakeEngine();
    auto sink = std::make_shared<CollectingSink>();
    tiny.engine->Submit(tiny.Greedy(golden.prompt(), "full", 30), sink);
    EXPECT_FALSE(sink->Wait().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ParallelCudaTest,
                         testing::Values(Case{"llama-tied", 2},
                                         Case{"qwen2-bias", 2},
                                         Case{"qwen2-bias", 2, true},
                                         Case{"mistral", 5}),
                         [](const testing::TestParamInfo<Case>& info) {
                           std::string name = info.param.model;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + (info.param.fp8_kv ? "_fp8" : "");
                         });

}  // namespace
}  // namespace strata
