#include "server/health/health_service.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/served_tiny_model.h"
#include "tests/testing/loopback_server.h"

namespace strata {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr const char* kReadinessNames[] = {
    "", "readiness", "strata.v1.Inference", "inference.GRPCInferenceService",
    "vllm.grpc.engine.VllmEngine"};

class HealthServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string address;
    server_ = StartOnLoopback({&service_}, &address);
    stub_ = Health::NewStub(
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  }
  void TearDown() override {
    service_.EndWatches();
    server_->Shutdown();
  }

  static HealthCheckRequest Of(const std::string& name) {
    HealthCheckRequest request;
    request.set_service(name);
    return request;
  }
  HealthCheckResponse::ServingStatus Check(const std::string& name) {
    grpc::ClientContext context;
    HealthCheckResponse response;
    EXPECT_TRUE(stub_->Check(&context, Of(name), &response).ok()) << name;
    return response.status();
  }
  void ExpectReadiness(HealthCheckResponse::ServingStatus status) {
    for (const char* name : kReadinessNames) EXPECT_EQ(Check(name), status);
  }

  ServedTinyModel served_;
  ServingState state_;
  HealthService service_{&state_};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Health::Stub> stub_;
};

TEST_F(HealthServiceTest, FollowsTheServersLife) {
  EXPECT_EQ(Check("liveness"), HealthCheckResponse::SERVING);
  ExpectReadiness(HealthCheckResponse::NOT_SERVING);
  state_.Publish(&served_.model);
  EXPECT_EQ(Check("liveness"), HealthCheckResponse::SERVING);
  ExpectReadiness(HealthCheckResponse::SERVING);
  state_.BeginDrain();
  EXPECT_EQ(Check("liveness"), HealthCheckResponse::SERVING);
  ExpectReadiness(HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthServiceTest, UnknownNamesAreNotFound) {
  for (const char* name : {"strata.v1.Nothing", "Liveness", "strata"}) {
    grpc::ClientContext context;
    HealthCheckResponse response;
    EXPECT_EQ(stub_->Check(&context, Of(name), &response).error_code(),
              grpc::StatusCode::NOT_FOUND);
  }
}

TEST_F(HealthServiceTest, WatchTellsThePresentThenEveryChange) {
  grpc::ClientContext context;
  auto reader = stub_->Watch(&context, Of("readiness"));
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  state_.Publish(&served_.model);
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  state_.BeginDrain();
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  context.TryCancel();
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(HealthServiceTest, AWatchOfAnUnknownNameStaysOpen) {
  grpc::ClientContext context;
  auto reader = stub_->Watch(&context, Of("no.such.Service"));
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  std::thread ending([&] { service_.EndWatches(); });
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  ending.join();
}

TEST_F(HealthServiceTest, WatchesAreCounted) {
  struct Watch {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader;
  };
  std::vector<std::unique_ptr<Watch>> watches;
  HealthCheckResponse response;
  for (int i = 0; i < 1024; ++i) {
    watches.push_back(std::make_unique<Watch>());
    watches.back()->reader = stub_->Watch(&watches.back()->context, Of(""));
    ASSERT_TRUE(watches.back()->reader->Read(&response));
  }
  grpc::ClientContext context;
  auto one_more = stub_->Watch(&context, Of(""));
  ASSERT_TRUE(one_more->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(one_more->Read(&response));
  EXPECT_EQ(one_more->Finish().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectReadiness(HealthCheckResponse::NOT_SERVING);
  // One that ends makes room.
  watches.back()->context.TryCancel();
  watches.back()->reader->Finish();
  grpc::StatusCode end = grpc::StatusCode::RESOURCE_EXHAUSTED;
  while (end == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    grpc::ClientContext retried;
    retried.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(300));
    auto reader = stub_->Watch(&retried, Of(""));
    while (reader->Read(&response)) {
    }
    end = reader->Finish().error_code();
  }
  EXPECT_EQ(end, grpc::StatusCode::DEADLINE_EXCEEDED);  // it was open
  for (const auto& watch : watches) watch->context.TryCancel();
}

TEST_F(HealthServiceTest, WatchesEndWhenTheServerDoes) {
  grpc::ClientContext context, late_context;
  auto reader = stub_->Watch(&context, Of(""));
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  service_.EndWatches();
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  auto late = stub_->Watch(&late_context, Of(""));
  while (late->Read(&response)) {
  }
  EXPECT_EQ(late->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  server_->Shutdown();  // waits for no one
}

}  // namespace
}  // namespace strata
