// Readers that do not read: what they may hold, and for how long.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/server/native/service_fixture.h"

namespace strata {
namespace {

using grpc::StatusCode;

// More than the transport takes of it from a reader that does not read: 4
// sequences of 250 tokens, 300 bytes each.
v1::GenerateRequest Large() {
  v1::GenerateRequest request = TinyServer::Greedy({3, 4}, "leaders=0", 250);
  request.set_num_sequences(4);
  request.set_top_logprobs(20);
  return request;
}

// A connection of its own, on which a call gets 64 KiB more than it was read.
std::unique_ptr<v1::Inference::Stub> Connect(const TinyServer& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return v1::Inference::NewStub(grpc::CreateCustomChannel(
      server.address, grpc::InsecureChannelCredentials(), arguments));
}

// A call whose reader does not read yet.
class UnreadCall {
 public:
  UnreadCall(v1::Inference::Stub* stub, const v1::GenerateRequest& request)
      : reader_(stub->Generate(&context_, request)) {}

  grpc::Status Read(int* num_tokens) {
    v1::GenerateResponse response;
    while (reader_->Read(&response)) *num_tokens += response.token_ids_size();
    return reader_->Finish();
  }
  const grpc::ClientContext& context() const { return context_; }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader_;
};

TEST(SlowReaderTest, TakesNothingForTooLongAndIsCancelled) {
  TinyServer server({}, {}, /*stall_limit=*/absl::Seconds(2));
  const auto stub = Connect(server);
  UnreadCall call(stub.get(), Large());
  const std::vector<RequestLog> logs = server.Logs(1);
  EXPECT_EQ(logs[0].generated_tokens, 1000);
  EXPECT_TRUE(server.WaitForCalls(absl::InfiniteDuration()));
  int num_tokens = 0;
  EXPECT_EQ(call.Read(&num_tokens).error_code(), StatusCode::CANCELLED);
  EXPECT_LT(num_tokens, 1000);
  EXPECT_TRUE(server.Generate(TinyServer::Greedy({3}, "full", 2)).ok());
}

TEST(SlowReaderTest, ThousandsOnSeveralConnectionsAreRefusedBeyondTheLimit) {
  constexpr int kLimit = 20;
  constexpr int kCalls = 3000;
  TinyEngine::Options options;
  options.max_queued_requests = kCalls;
  TinyServer server(options, {.max_calls = kLimit});
  std::vector<std::unique_ptr<v1::Inference::Stub>> stubs;
  for (int i = 0; i < 6; ++i) stubs.push_back(Connect(server));
  std::vector<std::unique_ptr<UnreadCall>> calls;
  for (int i = 0; i < kCalls; ++i) {
    calls.push_back(
        std::make_unique<UnreadCall>(stubs[i % stubs.size()].get(), Large()));
  }
  // All but those that are held have been refused.
  for (const RequestLog& log : server.Logs(kCalls - kLimit)) {
    EXPECT_TRUE(absl::IsResourceExhausted(log.status)) << log.status;
  }
  EXPECT_FALSE(server.WaitForCalls(absl::ZeroDuration()));
  int num_ok = 0;
  for (const auto& call : calls) {
    int num_tokens = 0;
    const grpc::Status status = call->Read(&num_tokens);
    if (status.ok()) {
      ++num_ok;
      EXPECT_EQ(num_tokens, 1000);
      continue;
    }
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(status.error_message().rfind("20 calls are live", 0), 0u)
        << status.error_message();
    EXPECT_EQ(
        call->context().GetServerTrailingMetadata().count("retry-after-ms"),
        1u);
  }
  EXPECT_EQ(num_ok, kLimit);
  EXPECT_EQ(Rejected(server, "queue_full"), kCalls - kLimit);
  EXPECT_TRUE(server.WaitForCalls(absl::InfiniteDuration()));
  EXPECT_TRUE(server.Generate(TinyServer::Greedy({3}, "full", 2)).ok());
  server.WaitUntilIdle();
}

}  // namespace
}  // namespace strata
