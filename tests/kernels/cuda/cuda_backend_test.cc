// The CUDA backend where memory ends or a launch fails.
#include "kernels/cuda/cuda_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/largest_step.h"
#include "kernels/cpu/dequantize.h"
#include "kernels/cuda/gemm_library.h"
#include "kernels/cuda/pack.h"
#include "kernels/cuda/packed_matrix.h"
#include "tests/kernels/cpu/weights.h"
#include "tests/testing/cuda_on_cpu/simulator.h"
#include "tests/testing/near.h"
#include "tests/testing/tiny_engine.h"

namespace strata {
namespace {

using testing::HasSubstr;

std::unique_ptr<Backend> MakeBackend() {
  auto backend = cuda::CudaBackend::Create();
  EXPECT_TRUE(backend.ok()) << backend.status();
  return *std::move(backend);
}

class CudaBackendTest : public testing::Test {
 protected:
  ~CudaBackendTest() override {
    cuda_on_cpu::memory_bytes = memory_bytes_;
    cuda_on_cpu::FailLaunchAfter(-1);
  }

  const size_t memory_bytes_ = cuda_on_cpu::memory_bytes;
};

std::vector<int32_t> Prompt(int size) {
  std::vector<int32_t> prompt(size);
  for (int i = 0; i < size; ++i) prompt[i] = 1 + i;
  return prompt;
}

// Whatever a step does within its limits, all that it needs is there: prompts
// beside sequences that decode, scores of a whole prompt, and no row more than
// decode, which a graph rounds up.
TEST_F(CudaBackendTest, StepsTakeNoMemoryThatIsNotReserved) {
  struct Case {
    int max_sequences, max_batched_tokens, prompt, tokens;
  };
  for (const Case& c : {Case{5, 40, 37, 3}, {9, 11, 1, 6}}) {
    SCOPED_TRACE(c.max_batched_tokens);
    cuda_on_cpu::memory_bytes = memory_bytes_;
    const TinyEngine tiny({.num_pages = 400,
                           .max_sequences = c.max_sequences,
                           .max_batched_tokens = c.max_batched_tokens,
                           .make_backend = MakeBackend});
    cuda_on_cpu::memory_bytes = cuda_on_cpu::used_bytes;
    std::vector<std::shared_ptr<CollectingSink>> sinks;
    const auto submit = [&](Request request) {
      sinks.push_back(std::make_shared<CollectingSink>());
      tiny.engine->Submit(std::move(request), sinks.back());
    };
    const char* const specs[] = {"full", "every=2", "every=4", "prefix=1"};
    for (int i = 0; i < c.max_sequences; ++i) {
      submit(tiny.Greedy(Prompt(c.prompt), specs[i % 4], c.tokens));
    }
    Request score(tiny.Strategy("full"));
    score.kind = Request::Kind::kScore;
    score.prompt = Prompt(c.prompt + 4);
    EXPECT_TRUE(FitRequest(tiny.engine->limits(), {}, &score).ok());
    submit(score);
    for (const auto& sink : sinks) {
      const absl::Status status = sink->Wait();
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

TEST_F(CudaBackendTest, RunningOutOfMemoryIsAnErrorThatStays) {
  const std::unique_ptr<Backend> backend = MakeBackend();
  const size_t used = cuda_on_cpu::used_bytes;
  cuda_on_cpu::memory_bytes = used + 100'000;
  ASSERT_EQ(*backend->FreeBytes(), 100'000);
  backend->NewFloats(1000);
  EXPECT_TRUE(backend->Wait().ok());
  const KvLayout layout = {
      .num_pages = 100, .page_tokens = 16, .kv_heads = 2, .head_dim = 16};
  const absl::Status status = backend->CreateKvPages(layout);
  EXPECT_EQ(status, absl::ResourceExhaustedError(
                        "CUDA, 204800 bytes of KV cache: out of memory"));
  EXPECT_EQ(backend->Wait(), status);
}

// Half of bf16's, and a byte for each token and head.
TEST_F(CudaBackendTest, PagesOfFp8HaveScales) {
  const auto bf16 = cuda::CudaBackend::Create();
  const auto fp8 = cuda::CudaBackend::Create(0, {.fp8_kv = true});
  ASSERT_TRUE(bf16.ok() && fp8.ok());
  EXPECT_EQ((*bf16)->kv_format(), "bf16");
  EXPECT_EQ((*fp8)->kv_format(), "fp8");
  KvLayout layout = {
      .num_pages = 3, .page_tokens = 16, .kv_heads = 8, .head_dim = 128};
  EXPECT_EQ((*bf16)->PageBytes(layout), 2 * 16 * 8 * 256);
  EXPECT_EQ((*fp8)->PageBytes(layout), 2 * 16 * 8 * 129);
  // In whole tokens, whatever is added to align it.
  for (layout.page_tokens = 4; layout.page_tokens <= 128;
       layout.page_tokens *= 2) {
    for (layout.kv_heads = 1; layout.kv_heads <= 8; ++layout.kv_heads) {
      for (const int head_dim : {16, 80, 128}) {
        layout.head_dim = head_dim;
        const int64_t bytes = (*fp8)->PageBytes(layout);
        EXPECT_EQ(bytes % 16, 0);
        EXPECT_EQ(bytes % layout.page_tokens, 0);
        const int64_t least =
            2 * layout.page_tokens * layout.kv_heads * (head_dim + 1);
        EXPECT_GE(bytes, least);
        EXPECT_LT(bytes, least + 16);
      }
    }
  }
}

TEST_F(CudaBackendTest, ALaunchThatFailsIsNamed) {
  const TinyEngine tiny({.make_backend = MakeBackend});
  // Embed, then of the first layer: the norm, the product, the append.
  cuda_on_cpu::FailLaunchAfter(4);
  auto sink = std::make_shared<CollectingSink>();
  tiny.engine->Submit(tiny.Greedy(Prompt(20), "full", 5), sink);
  EXPECT_EQ(sink->Wait(),
            absl::InternalError("the device failed: CUDA, Attention: "
                                "unspecified launch failure"));
  EXPECT_EQ(sink->Get(0).tokens.size(), 0u);
  EXPECT_EQ(tiny.engine->health(), EngineHealth::kDeviceLost);
  // An error of a device is for good, even if the next launch would do.
  cuda_on_cpu::FailLaunchAfter(-1);
  auto refused = std::make_shared<CollectingSink>();
  tiny.engine->Submit(tiny.Greedy(Prompt(2), "full", 1), refused);
  EXPECT_EQ(refused->Wait().code(), absl::StatusCode::kUnavailable);
}

TEST_F(CudaBackendTest, AGraphThatFailsEndsItsRequests) {
  const TinyEngine tiny({.make_backend = MakeBackend});
  auto sink = std::make_shared<CollectingSink>([](int tokens) {
    if (tokens == 3) cuda_on_cpu::FailLaunchAfter(7);
  });
  tiny.engine->Submit(tiny.Greedy(Prompt(2), "full", 9), sink);
  const absl::Status status = sink->Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("CUDA, launching a step's graph: "));
  EXPECT_EQ(sink->Get(0).tokens.size(), 3u);
}

// Notes what it is asked for, and leaves it to others.
class NotingLibrary final : public cuda::GemmLibrary {
 public:
  struct Call {
    int rows, num_matrices;
    bool operator==(const Call&) const = default;
  };
  explicit NotingLibrary(std::vector<Call>* calls) : calls_(calls) {}

  bool Product(const cuda::ProductArgs& args, int num_matrices,
               cudaStream_t) override {
    calls_->push_back({args.rows, num_matrices});
    return false;
  }

 private:
  std::vector<Call>* const calls_;
};

// Q of all rows of a mixed step, K and V of those that lead.
TEST_F(CudaBackendTest, FollowersHaveNoKeysAndValuesComputed) {
  auto backend = cuda::CudaBackend::Create();
  ASSERT_TRUE(backend.ok()) << backend.status();
  std::vector<NotingLibrary::Call> calls;
  (*backend)->UseLibrary(std::make_unique<NotingLibrary>(&calls));
  std::mt19937_64 random(1);
  const TestWeights square(DType::kBF16, 32, 32, random),
      half(DType::kBF16, 16, 32, random), norm(DType::kF32, 1, 32, random);
  const auto wq = (*backend)->Pack(square.view);
  const auto wk = (*backend)->Pack(half.view), wv = (*backend)->Pack(half.view);
  constexpr int kRows = 40;
  const LargestStep largest(0, kRows, 16, /*num_layers=*/1);
  QkvArgs qkv = {.x = (*backend)->NewFloats(kRows * 32),
                 .step = &largest.step(),
                 .q_rows = largest.rows(),
                 .kv_rows = {},
                 .norm = {(*backend)->NewFloats(norm.view), 1e-5f},
                 .wq = wq.get(),
                 .wk = wk.get(),
                 .wv = wv.get(),
                 .q_norm = {},
                 .k_norm = {},
                 .inv_freq = (*backend)->NewFloats(8),
                 .q = (*backend)->NewFloats(kRows * 32)};
  ASSERT_TRUE((*backend)
                  ->CreateKvPages({.num_pages = 3,
                                   .page_tokens = 16,
                                   .kv_heads = 1,
                                   .head_dim = 16})
                  .ok());
  for (const int num_kv : {kRows, 30, 0}) {
    qkv.kv_rows = largest.rows().last(num_kv);
    (*backend)->Qkv(qkv);
    EXPECT_TRUE((*backend)->Submit().ok());
    const absl::Status status = (*backend)->Wait();
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_THAT(calls, testing::ElementsAre(NotingLibrary::Call{kRows, 3},
                                          NotingLibrary::Call{kRows, 1},
                                          NotingLibrary::Call{30, 2},
                                          NotingLibrary::Call{kRows, 1}));
}

std::vector<double> Dequantized(const WeightView& view) {
  std::vector<float> row(view.cols);
  std::vector<double> values;
  for (int64_t r = 0; r < view.rows; ++r) {
    cpu::DequantizeRow(view, r, row.data());
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

// As where an adapter is of one of the two matrices.
TEST_F(CudaBackendTest, GateAndUpMayBeOfDifferentTypes) {
  constexpr int kDim = 64, kHidden = 96;
  std::mt19937_64 random(1);
  const TestWeights gate(DType::kQ8_0, kHidden, kDim, random),
      up(DType::kQ4_0, kHidden, kDim, random);
  const std::vector<double> gate_values = Dequantized(gate.view),
                            up_values = Dequantized(up.view);
  for (const int rows : {1, 7, 20}) {
    SCOPED_TRACE(rows);
    const std::unique_ptr<Backend> backend = MakeBackend();
    const std::vector<float> host_x = RandomFloats(rows * kDim, random);
    const std::vector<float> ones(kDim, 1.0f);
    float* x = backend->NewFloats(rows * kDim);  // host memory here
    std::copy(host_x.begin(), host_x.end(), x);
    float* y = backend->NewFloats(rows * kHidden);
    const auto packed_gate = backend->Pack(gate.view);
    const auto packed_up = backend->Pack(up.view);
    backend->GatedMlp(
        {.x = x,
         .rows = rows,
         .norm = {backend->NewFloats(
                      {.data = reinterpret_cast<const std::byte*>(ones.data()),
                       .type = DType::kF32,
                       .rows = 1,
                       .cols = kDim}),
                  1e-6f},
         .gate = packed_gate.get(),
         .up = packed_up.get(),
         .y = y});
    ASSERT_TRUE(backend->Submit().ok());
    ASSERT_TRUE(backend->Wait().ok());
    std::vector<float> got, want;
    for (int i = 0; i < rows * kHidden; ++i) {
      got.push_back(ToFloat(reinterpret_cast<const Bf16*>(y)[i]));
    }
    for (int r = 0; r < rows; ++r) {
      double squares = 0;
      for (int c = 0; c < kDim; ++c) {
        squares += double{x[r * kDim + c]} * x[r * kDim + c];
      }
      const double scale = 1 / std::sqrt(squares / kDim + 1e-6);
      for (int o = 0; o < kHidden; ++o) {
        double g = 0, u = 0;
        for (int c = 0; c < kDim; ++c) {
          const double in =
              ToFloat(ToBf16(static_cast<float>(x[r * kDim + c] * scale)));
          g += gate_values[o * kDim + c] * in;
          u += up_values[o * kDim + c] * in;
        }
        want.push_back(static_cast<float>(g / (1 + std::exp(-g)) * u));
      }
    }
    // Tensor cores take weights in bf16; outputs are some hundreds.
    EXPECT_TRUE(AllNear(got, want, 0.5f, 0.02f));
  }
}

TEST_F(CudaBackendTest, PackedBytesAreThoseOfTheMatrix) {
  std::mt19937_64 random(1);
  for (const bool fp8 : {false, true}) {
    const auto made =
        cuda::CudaBackend::Create(/*device=*/0, {.fp8_weights = fp8});
    ASSERT_TRUE(made.ok()) << made.status();
    Backend* const backend = made->get();
    for (const DType type : kAllDTypes) {
      SCOPED_TRACE(::testing::Message() << DTypeName(type) << ' ' << fp8);
      const TestWeights weights(type, 7, 96, random);
      const auto num_bytes = backend->PackedBytes(weights.view);
      ASSERT_TRUE(num_bytes.ok()) << num_bytes.status();
      EXPECT_EQ(backend->Pack(weights.view)->num_bytes(), *num_bytes);
      // The embedding's table stays what it is without fp8.
      const auto table_bytes = backend->TableBytes(weights.view);
      ASSERT_TRUE(table_bytes.ok()) << table_bytes.status();
      const bool is_float = type <= DType::kBF16;
      EXPECT_EQ(*table_bytes, fp8 && is_float ? 7 * 96 * 2 : *num_bytes);
    }
  }
}

// Which is copied to the device in two pieces.
TEST_F(CudaBackendTest, PiecesOfALargeMatrixAreTheWhole) {
  constexpr int64_t kRows = 4100, kCols = 4096;  // more than 16 MiB of fp8
  std::vector<Bf16> weights(kRows * kCols);
  for (int64_t i = 0; i < kRows * kCols; ++i) {
    const auto v = static_cast<float>(i % 7 + 1);
    weights[i] = ToBf16(std::ldexp(v, static_cast<int>(i / kCols % 11)));
  }
  const WeightView view = {
      .data = reinterpret_cast<const std::byte*>(weights.data()),
      .type = DType::kBF16,
      .rows = kRows,
      .cols = kCols};
  std::vector<std::byte> data(kRows * kCols);
  std::vector<float> scales(kRows);
  cuda::PackRows(view, cuda::WeightFormat::kFp8, 0, kRows, data.data(),
                 reinterpret_cast<std::byte*>(scales.data()));
  const auto backend =
      cuda::CudaBackend::Create(/*device=*/0, {.fp8_weights = true});
  ASSERT_TRUE(backend.ok()) << backend.status();
  const std::unique_ptr<Matrix> matrix = (*backend)->Pack(view);
  const cuda::DeviceMatrix packed = cuda::PackedMatrix::Of(matrix.get());
  std::vector<std::byte> got(data.size());
  std::vector<float> got_scales(scales.size());
  cudaMemcpy(got.data(), packed.data, got.size(), cudaMemcpyDeviceToHost);
  cudaMemcpy(got_scales.data(), packed.row_scales, kRows * sizeof(float),
             cudaMemcpyDeviceToHost);
  EXPECT_TRUE(got == data);
  EXPECT_EQ(got_scales, scales);
}

TEST_F(CudaBackendTest, RefusesWhatItsKernelsDoNotTake) {
  const std::unique_ptr<Backend> backend = MakeBackend();
  const auto odd =
      backend->PackedBytes({.type = DType::kBF16, .rows = 16, .cols = 24});
  EXPECT_EQ(odd.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(odd.status().message()), HasSubstr("not of 24"));
  const KvLayout heads_of_40 = {
      .num_pages = 1, .page_tokens = 16, .kv_heads = 2, .head_dim = 40};
  const auto reserved = backend->Reserve(heads_of_40);
  EXPECT_EQ(reserved.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(reserved.status().message()),
              HasSubstr("head_dim of 16, 32, 64, 80, 96, 128, 256, not of 40"));
}

}  // namespace
}  // namespace strata
