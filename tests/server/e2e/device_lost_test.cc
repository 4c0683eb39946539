// A server whose device fails while it serves, over all its ports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "kernels/cpu/cpu_backend.h"
#include "proto/health.grpc.pb.h"
#include "server/faces.h"
#include "server/kserve/proto/grpc_service.grpc.pb.h"
#include "server/vllm/proto/vllm_engine.grpc.pb.h"
#include "tests/server/e2e/client.h"
#include "tests/server/e2e/zero_model.h"
#include "tests/server/hosted_model.h"
#include "tests/testing/faulty_backend.h"

namespace strata {
namespace {

using grpc::StatusCode;
using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using testing::HasSubstr;

constexpr int kLong = 10000;  // tokens: many seconds

absl::Status BrokenCable() {
  return absl::InternalError("CUDA, running a step: the cable is broken");
}

// The server's own parts in this process, over the CPU backend with a fault.
class DeviceLostTest : public testing::Test {
 protected:
  void Start(const std::string& model,
             std::function<absl::Status(int)> on_step) {
    options_.model = model;
    options_.grpc_port = options_.http_port = 0;
    options_.kv_memory = {.bytes = 512 << 20};
    faces_ = std::make_unique<Faces>(options_, log_.get());
    ASSERT_TRUE(faces_->Open().ok());
    auto host =
        LoadHost(options_,
                 std::make_unique<FaultyBackend>(
                     std::make_unique<cpu::CpuBackend>(cpu::CpuOptions{}),
                     Faults{.on_step = std::move(on_step)}),
                 &log_);
    ASSERT_TRUE(host.ok()) << host.status();
    host_ = *std::move(host);
    faces_->Serve(host_.get());
    client_ = std::make_unique<Client>(faces_->grpc_address());
  }
  ~DeviceLostTest() override {
    if (faces_ == nullptr) return;
    faces_->BeginDrain();
    if (host_ != nullptr) host_->engine()->Drain(absl::InfiniteDuration());
    faces_->Close(absl::Seconds(5));
  }

  bool IsServing(const std::string& service) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    EXPECT_TRUE(Health::NewStub(client_->channel())
                    ->Check(&context, request, &response)
                    .ok());
    return response.status() == HealthCheckResponse::SERVING;
  }
  HttpAnswer Get(const std::string& path) {
    return HttpGet(faces_->http_address(), path);
  }
  // Lines of the log with `text`.
  int CountLines(const std::string& text) const {
    int count = 0;
    for (const absl::string_view line : absl::StrSplit(log_.Text(), '\n')) {
      if (line.find(text) != line.npos) ++count;
    }
    return count;
  }

  FileLogger log_;
  ServerOptions options_;
  std::unique_ptr<ModelHost> host_;  // outlives the faces
  std::unique_ptr<Faces> faces_;
  std::unique_ptr<Client> client_;
};

// What the faces say of the server.
struct Said {
  bool live, ready, model_ready, healthy;
};
Said AskFaces(Client* client) {
  Said said = {};
  const auto kserve =
      inference::GRPCInferenceService::NewStub(client->channel());
  {
    grpc::ClientContext context;
    inference::ServerLiveResponse response;
    EXPECT_TRUE(kserve->ServerLive(&context, {}, &response).ok());
    said.live = response.live();
  }
  {
    grpc::ClientContext context;
    inference::ServerReadyResponse response;
    EXPECT_TRUE(kserve->ServerReady(&context, {}, &response).ok());
    said.ready = response.ready();
  }
  {
    grpc::ClientContext context;
    inference::ModelReadyRequest request;
    request.set_name(client->GetModel().name());
    inference::ModelReadyResponse response;
    EXPECT_TRUE(kserve->ModelReady(&context, request, &response).ok());
    said.model_ready = response.ready();
  }
  const auto engine =
      ::vllm::grpc::engine::VllmEngine::NewStub(client->channel());
  grpc::ClientContext context;
  ::vllm::grpc::engine::HealthCheckResponse response;
  EXPECT_TRUE(engine->HealthCheck(&context, {}, &response).ok());
  said.healthy = response.healthy();
  return said;
}

TEST_F(DeviceLostTest, EndsCallsRefusesNewOnesAndSaysSoEverywhere) {
  std::atomic<bool> is_broken{false};
  Start(ZeroModel().Write("lost"),
        [&](int) { return is_broken ? BrokenCable() : absl::OkStatus(); });
  grpc::ClientContext watch_context;
  const auto health = Health::NewStub(client_->channel());
  const auto watch = health->Watch(&watch_context, HealthCheckRequest());
  HealthCheckResponse seen;
  ASSERT_TRUE(watch->Read(&seen));
  EXPECT_EQ(seen.status(), HealthCheckResponse::SERVING);
  const Said before = AskFaces(client_.get());
  EXPECT_TRUE(before.live && before.ready && before.model_ready &&
              before.healthy);
  EXPECT_EQ(Get("/health/live").status, 200);

  std::vector<Generated> got(2);
  std::vector<std::thread> streams;
  for (Generated& of : got) {
    streams.emplace_back([&] {
      of = client_->Generate(GreedyRequest({1, 2, 3}, "full", kLong));
    });
  }
  EXPECT_TRUE(client_->WaitForLoad(2, 0));
  is_broken = true;
  for (std::thread& stream : streams) stream.join();
  for (const Generated& of : got) {
    EXPECT_EQ(of.status.error_code(), StatusCode::INTERNAL);
    EXPECT_THAT(of.status.error_message(), HasSubstr("the cable is broken"));
    EXPECT_EQ(of.done.size(), 0u);
  }

  const Generated refused = client_->Generate(GreedyRequest({1}, "full", 1));
  EXPECT_EQ(refused.status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.status.error_message(), HasSubstr("device"));
  ASSERT_TRUE(watch->Read(&seen));
  EXPECT_EQ(seen.status(), HealthCheckResponse::NOT_SERVING);
  for (const char* service :
       {"", "liveness", "readiness", "strata.v1.Inference",
        "inference.GRPCInferenceService", "vllm.grpc.engine.VllmEngine"}) {
    EXPECT_FALSE(IsServing(service)) << service;
  }
  const Said after = AskFaces(client_.get());
  EXPECT_FALSE(after.live || after.ready || after.model_ready || after.healthy);
  for (const char* path : {"/health", "/health/ready", "/health/live"}) {
    EXPECT_EQ(Get(path).status, 503) << path;
    EXPECT_EQ(Get(path).body, "the engine's device is lost\n") << path;
  }
  const ScrapedMetrics scraped(Get("/metrics").body);
  EXPECT_EQ(scraped.Sum("strata_engine_fault", {"fault=\"device_lost\""}), 1);
  EXPECT_EQ(scraped.Sum("strata_engine_healthy"), 0);
  EXPECT_EQ(CountLines(" ERROR device_lost "), 1) << log_.Text();
  EXPECT_EQ(CountLines("error=\"CUDA, running a step: the cable is broken\""),
            1)
      << log_.Text();
  watch_context.TryCancel();
  watch->Finish();
}

// The tokens of the steps before it have come.
TEST_F(DeviceLostTest, AtStepTen) {
  Start("tests/golden/llama-tied",
        [](int step) { return step == 10 ? BrokenCable() : absl::OkStatus(); });
  const Generated got =
      client_->Generate(GreedyRequest({1, 2, 3}, "every=2", 100));
  EXPECT_EQ(got.status.error_code(), StatusCode::INTERNAL);
  EXPECT_EQ(got.tokens.at(0).size(), 8u);  // the first step warms up
  EXPECT_EQ(Get("/health/live").status, 503);
}

// Nothing is served by a device that fails before the first request.
TEST(DeviceLostAtStartTest, IsAnErrorOfTheStart) {
  FileLogger log;
  ServerOptions options;
  options.model = "tests/golden/llama-tied";
  const auto host =
      LoadHost(options,
               std::make_unique<FaultyBackend>(
                   std::make_unique<cpu::CpuBackend>(cpu::CpuOptions{}),
                   Faults{.on_step = [](int) { return BrokenCable(); }}),
               &log);
  EXPECT_EQ(host.status(), BrokenCable());
}

}  // namespace
}  // namespace strata
