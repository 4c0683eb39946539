// Calls that wait, are cut or are cancelled, on a model slow enough to catch
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/e2e/client.h"
#include "tests/server/e2e/server_process.h"
#include "tests/server/e2e/zero_model.h"

namespace strata {
namespace {

using grpc::StatusCode;

constexpr int kForever = 30000;  // tokens: minutes

class QueueTest : public testing::Test {
 protected:
  QueueTest()
      : server_({"--model=" + ZeroModel().Write("slow"), "--max_sequences=1",
                 "--max_queued_requests=1", "--kv_memory=512MiB"}) {}
  void SetUp() override {
    ASSERT_TRUE(server_.WaitUntilListening()) << server_.Log();
    client_ = std::make_unique<Client>(server_.grpc_address());
  }
  void TearDown() override {
    if (client_ == nullptr) return;  // it did not start
    // Nothing is left of any call.
    EXPECT_TRUE(client_->WaitForLoad(0, 0));
    const v1::GetLoadResponse load = client_->GetLoad();
    EXPECT_EQ(load.kv_used_bytes(), 0u);
    EXPECT_EQ(load.kv_reserved_bytes(), 0u);
    EXPECT_EQ(load.kv_cached_bytes() + load.kv_free_bytes(),
              load.kv_pool_bytes());
  }

  // Runs until its context is cancelled.
  std::thread StartForever(grpc::ClientContext* context, Generated* result) {
    return std::thread([this, context, result] {
      *result = client_->Generate(GreedyRequest({1, 2, 3}, "full", kForever),
                                  context);
    });
  }

  ServerProcess server_;
  std::unique_ptr<Client> client_;
};

TEST_F(QueueTest, FullQueueIsRefusedWithATime) {
  grpc::ClientContext running, waiting;
  Generated run, wait;
  std::thread first = StartForever(&running, &run);
  EXPECT_TRUE(client_->WaitForLoad(1, 0));
  std::thread second = StartForever(&waiting, &wait);
  EXPECT_TRUE(client_->WaitForLoad(1, 1));
  const ScrapedMetrics metrics = Scrape(server_);
  EXPECT_EQ(metrics.Sum("vllm:num_requests_running"), 1);
  EXPECT_EQ(metrics.Sum("vllm:num_requests_waiting"), 1);
  EXPECT_GT(metrics.Sum("vllm:kv_cache_usage_perc"), 0);
  EXPECT_EQ(HttpGet(server_.http_address(), "/health/ready").status, 200)
      << "a full queue is no illness";

  const Generated third = client_->Generate(GreedyRequest({1}, "full", 4));
  EXPECT_EQ(third.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(third.trailers.count("retry-after-ms"), 1u);

  running.TryCancel();
  waiting.TryCancel();
  first.join();
  second.join();
  EXPECT_EQ(run.status.error_code(), StatusCode::CANCELLED);
  EXPECT_EQ(wait.status.error_code(), StatusCode::CANCELLED);
  EXPECT_FALSE(run.tokens.empty());
  EXPECT_TRUE(wait.tokens.empty());
  EXPECT_TRUE(client_->WaitForLoad(0, 0));
  EXPECT_EQ(Scrape(server_).Sum("strata_request_finished_total",
                                {"finished_reason=\"cancelled\""}),
            2);
  EXPECT_EQ(Scrape(server_).Sum("strata_request_rejected_total",
                                {"reason=\"queue_full\""}),
            1);
}

TEST_F(QueueTest, DeadlineInDecode) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(3));
  const Generated got =
      client_->Generate(GreedyRequest({1, 2}, "every=2", kForever), &context);
  EXPECT_EQ(got.status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_FALSE(got.tokens.empty());
}

TEST_F(QueueTest, DeadlineInTheQueue) {
  grpc::ClientContext running;
  Generated run;
  std::thread first = StartForever(&running, &run);
  EXPECT_TRUE(client_->WaitForLoad(1, 0));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(300));
  const Generated got =
      client_->Generate(GreedyRequest({1, 2}, "full", 4), &context);
  EXPECT_EQ(got.status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(got.tokens.empty());
  EXPECT_TRUE(client_->WaitForLoad(1, 0)) << "it left the queue";
  running.TryCancel();
  first.join();
}

TEST_F(QueueTest, AbortEndsTheStreamWithItsUsage) {
  v1::GenerateRequest request = GreedyRequest({1, 2, 3}, "full", kForever);
  request.set_request_id("mine");
  Generated got;
  std::thread stream([&] { got = client_->Generate(request); });
  EXPECT_TRUE(client_->WaitForLoad(1, 0));
  grpc::ClientContext context;
  v1::AbortRequest abort;
  abort.set_request_id("mine");
  v1::AbortResponse aborted;
  EXPECT_TRUE(client_->inference().Abort(&context, abort, &aborted).ok());
  stream.join();
  EXPECT_EQ(aborted.aborted(), 1u);
  ASSERT_TRUE(got.status.ok()) << got.status.error_message();
  EXPECT_EQ(got.done.at(0).reason(), v1::ABORTED);
  EXPECT_EQ(got.done.at(0).usage().generated_tokens(), got.tokens[0].size());
}

TEST_F(QueueTest, RequestIsLoggedInOneLine) {
  v1::GenerateRequest request = GreedyRequest({1, 2, 3}, "every=2", 5);
  request.set_request_id("line one\nline \"two\"");
  EXPECT_TRUE(client_->Generate(request).status.ok());
  std::string log;
  for (int i = 0; i < 3000 && log.find(" request ") == log.npos; ++i) {
    absl::SleepFor(absl::Milliseconds(10));
    log = server_.Log();
  }
  EXPECT_THAT(log, testing::HasSubstr("label=\"line one\\nline \\\"two\\\"\""));
  EXPECT_THAT(log, testing::HasSubstr("strategy=every=2"));
  EXPECT_THAT(log, testing::HasSubstr("generated_tokens=5"));
  EXPECT_THAT(log, testing::HasSubstr("status=OK"));
}

}  // namespace
}  // namespace strata
