// A pool that is too small for what is asked at once.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "tests/server/e2e/client.h"
#include "tests/server/e2e/server_process.h"
#include "tests/testing/golden.h"

namespace strata {
namespace {

constexpr int kSamples = 6;

// 64 pages of 4 KiB: 8 columns of `full`, 16 positions each.
class AdmissionTest : public testing::Test {
 protected:
  AdmissionTest() : golden_("llama-tied") {}

  void Start(const std::string& admission, const std::string& kv_memory) {
    client_.reset();
    server_ = std::make_unique<ServerProcess>(std::vector<std::string>{
        "--model=" + golden_.directory(), "--precision=f32",
        "--admission=" + admission, "--kv_memory=" + kv_memory});
    ASSERT_TRUE(server_->WaitUntilListening()) << server_->Log();
    client_ = std::make_unique<Client>(server_->grpc_address());
  }
  // Samples of the golden prompt; 29 + 70 - 1 positions each: 7 columns.
  Generated Sample() {
    v1::GenerateRequest request = GreedyRequest(golden_.prompt(), "full", 70);
    request.mutable_sampling()->set_temperature(1);
    request.mutable_sampling()->set_seed(3);
    request.set_num_sequences(kSamples);
    return client_->Generate(request);
  }
  static uint32_t Preemptions(const Generated& got) {
    uint32_t sum = 0;
    for (const auto& [index, done] : got.done) {
      sum += done.usage().preemptions();
    }
    return sum;
  }
  void ExpectNothingHeld() {
    EXPECT_TRUE(client_->WaitForLoad(0, 0));
    const v1::GetLoadResponse load = client_->GetLoad();
    EXPECT_EQ(load.kv_used_bytes() + load.kv_reserved_bytes(), 0u);
    EXPECT_EQ(load.kv_cached_bytes() + load.kv_free_bytes(),
              load.kv_pool_bytes());
  }

  Golden golden_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(AdmissionTest, OptimisticPreemptsAndLosesNoToken) {
  Start("reserve", "4MiB");
  const Generated want = Sample();
  ASSERT_TRUE(want.status.ok()) << want.status.error_message();
  EXPECT_EQ(Preemptions(want), 0u);

  Start("optimistic", "256KiB");
  const Generated got = Sample();
  ASSERT_TRUE(got.status.ok()) << got.status.error_message();
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_GT(Preemptions(got), 0u);
  for (const auto& [index, done] : got.done) {
    EXPECT_EQ(done.reason(), v1::LENGTH);
    EXPECT_EQ(done.usage().generated_tokens(), 70u) << index;
  }
  ExpectNothingHeld();
  const ScrapedMetrics metrics = Scrape(*server_);
  EXPECT_EQ(metrics.Sum("strata_preemptions_total"), Preemptions(got));
  EXPECT_EQ(metrics.Sum("vllm:num_preemptions_total"), Preemptions(got));
  EXPECT_EQ(metrics.Sum("strata_generation_tokens_total"), 70 * kSamples);
}

TEST_F(AdmissionTest, ReserveNeverPreempts) {
  Start("reserve", "256KiB");
  const Generated got = Sample();
  ASSERT_TRUE(got.status.ok()) << got.status.error_message();
  EXPECT_EQ(Preemptions(got), 0u);
  EXPECT_EQ(Scrape(*server_).Sum("strata_preemptions_total"), 0);
  ExpectNothingHeld();
}

TEST_F(AdmissionTest, WhatFitsOnlyAtItsFloorStartsThere) {
  Start("reserve", "128KiB");  // 4 columns of `full`
  v1::GenerateRequest request = GreedyRequest(golden_.prompt(), "full", 70);
  EXPECT_EQ(client_->Generate(request).status.error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  request.mutable_strategy()->set_floor("every=4");
  const Generated got = client_->Generate(request);
  ASSERT_TRUE(got.status.ok()) << got.status.error_message();
  const v1::Usage& usage = got.done.at(0).usage();
  EXPECT_EQ(usage.strategy(), "every=4");
  EXPECT_EQ(usage.switches_size(), 0);
  EXPECT_EQ(usage.generated_tokens(), 70u);
  const ScrapedMetrics metrics = Scrape(*server_);
  EXPECT_EQ(metrics.Sum("strata_floor_starts_total"), 1);
  EXPECT_EQ(metrics.Sum("strata_strategy_switches_total"), 0);
  ExpectNothingHeld();
}

}  // namespace
}  // namespace strata
