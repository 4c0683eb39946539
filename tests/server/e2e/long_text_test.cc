// Long texts take long, and hold nothing else up.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "proto/health.grpc.pb.h"
#include "tests/server/e2e/client.h"
#include "tests/server/e2e/server_process.h"
#include "tests/server/e2e/text_model.h"

namespace strata {
namespace {

using grpc::StatusCode;
using std::chrono::system_clock;

constexpr int kPositions = 131072;

class LongTextTest : public testing::Test {
 protected:
  LongTextTest()
      : server_({"--model=" + WriteTextModel("long_text", kPositions),
                 "--threads=1", "--kv_memory=64MiB"}) {
    EXPECT_TRUE(server_.WaitUntilListening()) << server_.Log();
    client_ = std::make_unique<Client>(server_.grpc_address());
  }
  ~LongTextTest() override {
    for (std::thread& thread : threads_) thread.join();
  }

  StatusCode Tokenize(const std::string& text,
                      std::chrono::milliseconds limit) {
    grpc::ClientContext context;
    context.set_deadline(system_clock::now() + limit);
    v1::TokenizeRequest request;
    request.set_text(text);
    v1::TokenizeResponse response;
    return client_->inference()
        .Tokenize(&context, request, &response)
        .error_code();
  }

  // 16 calls at once, each of a second or so.
  void StartHugeCalls(std::chrono::milliseconds limit) {
    for (int i = 0; i < 16; ++i) {
      threads_.emplace_back([this, limit] {
        if (Tokenize(std::string(3 << 20, ' '), limit) == StatusCode::OK) {
          ++num_ok_;
        }
        ++num_over_;
      });
    }
    // Until the server has them.
    absl::SleepFor(absl::Milliseconds(300));
  }

  ServerProcess server_;
  std::unique_ptr<Client> client_;
  std::atomic<int> num_over_ = 0;
  std::atomic<int> num_ok_ = 0;
  std::vector<std::thread> threads_;
};

TEST_F(LongTextTest, HealthAndShortTextsAreAnsweredMeanwhile) {
  StartHugeCalls(std::chrono::minutes(1));
  const auto health = grpc::health::v1::Health::NewStub(client_->channel());
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    context.set_deadline(system_clock::now() + std::chrono::seconds(10));
    grpc::health::v1::HealthCheckResponse response;
    EXPECT_TRUE(health->Check(&context, {}, &response).ok());
    EXPECT_EQ(Tokenize("short", std::chrono::seconds(10)), StatusCode::OK);
  }
  EXPECT_LT(num_over_, 16) << "too fast for this test";
}

TEST_F(LongTextTest, CallsPastTheirDeadlineAreSkipped) {
  StartHugeCalls(std::chrono::seconds(1));
  while (num_over_ < 16) absl::SleepFor(absl::Milliseconds(10));
  // Behind all of them.
  EXPECT_EQ(Tokenize(std::string(9 << 10, 'a'), std::chrono::minutes(2)),
            StatusCode::OK);
}

TEST_F(LongTextTest, TheEndDoesNotWaitForAllOfThem) {
  StartHugeCalls(std::chrono::minutes(5));
  server_.Signal(SIGTERM);
  EXPECT_EQ(server_.Wait(), 0);
  while (num_over_ < 16) absl::SleepFor(absl::Milliseconds(10));
  // Those that were being encoded came to their end, not those behind them.
  EXPECT_LT(num_ok_, 8);
}

TEST_F(LongTextTest, ACancelAtAnyMomentLeavesNothingBehind) {
  std::string text;
  while (text.size() < (9 << 10)) text += "long text ";
  std::vector<std::thread> clients;
  for (int seed = 0; seed < 6; ++seed) {
    clients.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 12; ++i) {
        grpc::ClientContext context;
        v1::GenerateRequest request;
        request.set_text(text);
        request.mutable_stopping()->set_max_tokens(2);
        const auto reader = client_->inference().Generate(&context, request);
        absl::SleepFor(absl::Microseconds(random() % 30000));
        context.TryCancel();
        v1::GenerateResponse response;
        while (reader->Read(&response)) {
        }
        reader->Finish();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(client_->WaitForLoad(0, 0));
  const v1::GetLoadResponse load = client_->GetLoad();
  EXPECT_EQ(load.kv_cached_bytes() + load.kv_free_bytes(),
            load.kv_pool_bytes());
  v1::GenerateRequest request;
  request.set_text(text);
  request.mutable_stopping()->set_max_tokens(2);
  EXPECT_TRUE(client_->Generate(request).status.ok());
}

}  // namespace
}  // namespace strata
