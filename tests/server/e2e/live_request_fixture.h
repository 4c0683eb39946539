#ifndef TESTS_SERVER_E2E_LIVE_REQUEST_FIXTURE_H_
#define TESTS_SERVER_E2E_LIVE_REQUEST_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/server/e2e/client.h"
#include "tests/server/e2e/server_process.h"
#include "tests/server/e2e/zero_model.h"

namespace strata {

inline constexpr int kForever = 20000;  // tokens: minutes

// A model of 8 layers slow enough to meet requests running, in a pool that
// holds 1.6 of kForever tokens under `full`.
class LiveRequestTest : public testing::Test {
 protected:
  static constexpr uint64_t kPrompt = 3;
  static constexpr uint64_t kPageTokens = 16;

  explicit LiveRequestTest(int max_sequences)
      : server_({"--model=" + ZeroModel().Write("slow"),
                 absl::StrCat("--max_sequences=", max_sequences),
                 "--max_queued_requests=1", "--kv_memory=512MiB"}) {}
  void SetUp() override {
    ASSERT_TRUE(server_.WaitUntilListening()) << server_.Log();
    client_ = std::make_unique<Client>(server_.grpc_address());
    page_bytes_ = client_->GetModel().page_bytes();
  }
  void TearDown() override {
    if (client_ == nullptr) return;  // it did not start
    EXPECT_TRUE(client_->WaitForLoad(0, 0));
    EXPECT_EQ(Held(), 0u);
  }

  std::thread Start(const std::string& label, const std::string& strategy,
                    const std::string& floor, int max_tokens,
                    Generated* result) {
    return std::thread([=, this] {
      v1::GenerateRequest request =
          GreedyRequest({1, 2, 3}, strategy, max_tokens);
      request.set_request_id(label);
      request.mutable_strategy()->set_floor(floor);
      *result = client_->Generate(request);
    });
  }
  // Of a request of kForever tokens.
  uint64_t Bytes(uint64_t leaders) const {
    const uint64_t positions = kPrompt + kForever - 1;
    return leaders * ((positions + kPageTokens - 1) / kPageTokens) *
           page_bytes_;
  }
  // By live requests.
  uint64_t Held() {
    const v1::GetLoadResponse load = client_->GetLoad();
    return load.kv_used_bytes() + load.kv_reserved_bytes();
  }
  // What is reported is that of the latest step.
  bool WaitUntilHeld(uint64_t bytes) {
    for (int i = 0; i < 2000; ++i) {
      if (Held() == bytes) return true;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return false;
  }

  ServerProcess server_;
  std::unique_ptr<Client> client_;
  uint64_t page_bytes_ = 0;
};

}  // namespace strata

#endif  // TESTS_SERVER_E2E_LIVE_REQUEST_FIXTURE_H_
