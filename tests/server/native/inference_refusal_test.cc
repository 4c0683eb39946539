// What InferenceService refuses, and how it counts it.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/server/native/service_fixture.h"
#include "tests/testing/loopback_server.h"

namespace strata {
namespace {

// Calls a method, by its full name, with any bytes.
grpc::Status CallWithBytes(const std::shared_ptr<grpc::Channel>& channel,
                           const std::string& method,
                           const std::string& bytes) {
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub(channel);
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  grpc::Status status;
  absl::Notification done;
  stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &response,
                 [&](grpc::Status s) {
                   status = s;
                   done.Notify();
                 });
  done.WaitForNotification();
  return status;
}

TEST(InferenceServiceTest, MessagesThatCannotBeParsedAreRefusedWithAText) {
  TinyServer server;
  const std::vector<std::string> methods = {
      "Inference/Generate",   "Inference/Score", "Inference/Tokenize",
      "Inference/Detokenize", "Inference/Abort", "Inference/GetModel",
      "Inference/GetLoad",    "Admin/SetPolicy", "Admin/SwitchStrategy"};
  for (const std::string& method : methods) {
    const grpc::Status status =
        CallWithBytes(server.channel, "/strata.v1." + method, "\xff\xff\xff");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << method;
    EXPECT_NE(status.error_message(), "") << method;
  }
  EXPECT_EQ(Rejected(server, "invalid"), 7);
  const std::vector<RequestLog> logs = server.Logs(7);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ("Inference/" + std::string(logs[i].method), methods[i]);
    EXPECT_TRUE(absl::IsInvalidArgument(logs[i].status));
  }
  // Field 1, Generate's model: not UTF-8.
  const grpc::Status status =
      CallWithBytes(server.channel, "/strata.v1.Inference/Generate",
                    std::string("\x0a\x02\xc3\x28", 4));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message(), "");
  EXPECT_TRUE(server.Generate(TinyServer::Greedy({3}, "full", 2)).ok());
}

TEST(InferenceServiceTest, RefusalsAreCountedByReason) {
  TinyEngine::Options options;
  options.num_pages = 80;  // 10 of each layer: 40 positions under full
  TinyServer server(options);
  v1::GenerateRequest request = TinyServer::Greedy({3}, "full", 100);
  EXPECT_EQ(server.Generate(request).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  request.mutable_strategy()->set_spec("leaders=0");
  EXPECT_TRUE(server.Generate(request).ok());
  request.mutable_tokens()->mutable_ids()->Resize(kContext, 3);
  EXPECT_EQ(server.Generate(request).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  request.set_model("no");
  EXPECT_EQ(server.Generate(request).error_code(), grpc::StatusCode::NOT_FOUND);
  server.state.BeginDrain();
  EXPECT_EQ(server.Generate(request).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Rejected(server, "never_fits"), 2);
  EXPECT_EQ(Rejected(server, "invalid"), 1);
  EXPECT_EQ(Rejected(server, "draining"), 1);
}

TEST(InferenceServiceTest, AFullQueueIsExhausted) {
  TinyEngine::Options options;
  options.max_sequences = 1;
  options.max_queued_requests = 0;
  TinyServer server(options);
  std::atomic<int> num_ok{0}, num_refused{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      grpc::ClientContext context;
      std::vector<Generated> generated;
      const grpc::Status status =
          server.Generate(Endless("x"), &generated, &context);
      if (status.ok()) {
        ++num_ok;
        return;
      }
      EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
      EXPECT_EQ(context.GetServerTrailingMetadata().count("retry-after-ms"),
                1u);
      ++num_refused;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GE(num_ok, 1);
  EXPECT_EQ(num_ok + num_refused, 8);
  EXPECT_EQ(Rejected(server, "queue_full"), num_refused);
  server.WaitUntilIdle();
}

TEST(InferenceServiceTest, LoadingAndDrainingAnswerUnavailable) {
  ServedTinyModel served;
  ServingState state;
  Admission admission(&state, nullptr);
  InferenceService service(&admission);
  std::string address;
  const std::unique_ptr<grpc::Server> server =
      StartOnLoopback({&service}, &address);
  const auto stub = v1::Inference::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  const auto get_model = [&] {
    grpc::ClientContext context;
    v1::GetModelResponse response;
    return stub->GetModel(&context, {}, &response).error_code();
  };
  const auto generate = [&] {
    grpc::ClientContext context;
    auto reader = stub->Generate(&context, TinyServer::Greedy({3}, "full", 2));
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
    }
    return reader->Finish().error_code();
  };
  EXPECT_EQ(get_model(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(generate(), grpc::StatusCode::UNAVAILABLE);
  state.Publish(&served.model);
  EXPECT_EQ(get_model(), grpc::StatusCode::OK);
  EXPECT_EQ(generate(), grpc::StatusCode::OK);
  state.BeginDrain();
  EXPECT_EQ(get_model(), grpc::StatusCode::OK);
  EXPECT_EQ(generate(), grpc::StatusCode::UNAVAILABLE);
  server->Shutdown();
}

}  // namespace
}  // namespace strata
