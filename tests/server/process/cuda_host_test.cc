// A model on a GPU of little memory: it is taken in order, and what does not
// fit is named.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_backend.h"
#include "tests/server/e2e/zero_model.h"
#include "tests/server/hosted_model.h"

namespace strata {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class CudaHostTest : public testing::Test {
 protected:
  CudaHostTest() {
    options_.model = "tests/golden/llama-tied";
    options_.kv_memory = {.bytes = 1 << 20};
  }
  ~CudaHostTest() override { cuda_on_cpu::memory_bytes = memory_bytes_; }

  // With `free_bytes` on the device.
  absl::StatusOr<std::unique_ptr<ModelHost>> Load(int64_t free_bytes) {
    cuda_on_cpu::memory_bytes = cuda_on_cpu::used_bytes + free_bytes;
    auto backend = cuda::CudaBackend::Create(/*device=*/0, cuda_);
    EXPECT_TRUE(backend.ok()) << backend.status();
    return LoadHost(options_, *std::move(backend), &log_);
  }
  ServerOptions options_;
  cuda::CudaOptions cuda_;
  FileLogger log_;

 private:
  const size_t memory_bytes_ = cuda_on_cpu::memory_bytes;
};

TEST_F(CudaHostTest, TheLogsPlanIsWhatTheDeviceHas) {
  options_.kv_memory = {.percent = 90};
  const auto host = Load(64 << 20);
  ASSERT_TRUE(host.ok()) << host.status();
  const int64_t kv = log_.Number("memory", "kv_bytes");
  const int64_t left = log_.Number("memory", "left_bytes");
  EXPECT_GT(kv, (kv + left) / 100 * 89);
  EXPECT_LE(kv, (kv + left) / 100 * 90);
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  // Page tables come out of what is left; allocations are rounded up.
  EXPECT_NEAR(free, left, 0.01 * kv);
  const int64_t planned = log_.Number("memory", "weight_bytes") +
                          log_.Number("memory", "workspace_bytes") + kv + left;
  EXPECT_NEAR(planned, 64 << 20, 1 << 20);
  EXPECT_LE(planned, 64 << 20);
}

// With heads of 16: 32 bytes of bf16, 16 of fp8 and one for the scale.
TEST_F(CudaHostTest, CachesOfFp8HoldMoreTokens) {
  int64_t pages[2];
  for (const bool fp8 : {false, true}) {
    cuda_.fp8_kv = fp8;
    const auto host = Load(64 << 20);
    ASSERT_TRUE(host.ok()) << host.status();
    pages[fp8] =
        log_.Number("memory", "kv_bytes") / log_.Number("plan", "page_bytes");
  }
  EXPECT_EQ(pages[1], pages[0] * 32 / 17);
}

// More and more memory, until all fits: each part is named by turns, as the
// device itself ends before what could be told before it was asked.
TEST_F(CudaHostTest, EachPartThatDoesNotFitIsNamed) {
  std::set<std::string> parts;
  absl::Status status = absl::UnknownError("not loaded");
  for (int64_t free_bytes = 0; !status.ok(); free_bytes += 100'000) {
    status = Load(free_bytes).status();
    if (status.ok()) break;
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    std::string part(status.message());
    EXPECT_THAT(part, StartsWith("out of memory for the "));
    EXPECT_THAT(part, AnyOf(HasSubstr("--model"),
                            HasSubstr("lower --max_batched_tokens=512)"),
                            HasSubstr("lower --kv_memory=1MiB)")));
    parts.insert(part.substr(0, part.find(':')));
  }
  EXPECT_THAT(parts, ElementsAre("out of memory for the KV cache",
                                 "out of memory for the weights",
                                 "out of memory for the workspace"));
}

TEST_F(CudaHostTest, MatricesThatTheKernelsDoNotTakeAreNamed) {
  const ZeroModel model = {.intermediate = 2056, .layers = 2};
  options_.model = model.Write("odd");
  const auto host = Load(int64_t{1} << 30);
  EXPECT_EQ(host.status(),
            absl::UnimplementedError(absl::StrCat(
                options_.model,
                ": down of layer 0 [512, 2056]: the CUDA backend takes "
                "matrices of a multiple of 16 columns, not of 2056")));
}

}  // namespace
}  // namespace strata
