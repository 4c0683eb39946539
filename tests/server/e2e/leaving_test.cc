// The watchdog, and the time between SIGTERM and the drain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "proto/health.grpc.pb.h"
#include "tests/server/e2e/client.h"
#include "tests/server/e2e/server_process.h"
#include "tests/server/e2e/zero_model.h"

namespace strata {
namespace {

using grpc::StatusCode;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using testing::AnyOf;
using testing::HasSubstr;

HealthCheckResponse::ServingStatus Check(Client* client,
                                         const std::string& service) {
  const auto health = grpc::health::v1::Health::NewStub(client->channel());
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service(service);
  HealthCheckResponse response;
  EXPECT_TRUE(health->Check(&context, request, &response).ok());
  return response.status();
}

void WaitForStatus(const ServerProcess& server, const char* path, int status) {
  while (HttpGet(server.http_address(), path).status != status) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

// Every step takes longer than the limit: between two of them the server looks
// stalled, for as long as the request runs.
TEST(WatchdogTest, AStalledServerIsNotLiveAndRecovers) {
  ServerProcess server({"--model=" + ZeroModel().Write("stalls"),
                        "--kv_memory=512MiB", "--stall_limit=1ms"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  EXPECT_EQ(HttpGet(server.http_address(), "/health/live").status, 200);
  Client client(server.grpc_address());
  v1::GenerateRequest request = GreedyRequest({1, 2, 3}, "full", 30000);
  request.set_request_id("long");
  std::thread stream([&] { client.Generate(request); });
  WaitForStatus(server, "/health/live", 503);
  WaitForStatus(server, "/health/ready", 503);
  while (Check(&client, "liveness") == HealthCheckResponse::SERVING) {
  }
  while (Check(&client, "") == HealthCheckResponse::SERVING) {
  }
  while (HttpGet(server.http_address(), "/health/live").body !=
         "the engine is stalled\n") {
  }
  for (;;) {
    const ScrapedMetrics scraped = Scrape(server);
    const bool is_stalled =
        scraped.Sum("strata_engine_fault", {"fault=\"stalled\""}) == 1;
    EXPECT_EQ(scraped.Sum("strata_engine_healthy"), is_stalled ? 0 : 1);
    EXPECT_EQ(scraped.Sum("strata_engine_fault", {"fault=\"device_lost\""}), 0);
    if (is_stalled) break;
  }
  EXPECT_EQ(client.Abort("long"), 1u);
  stream.join();
  WaitForStatus(server, "/health/live", 200);
  WaitForStatus(server, "/health/ready", 200);
  EXPECT_EQ(Check(&client, ""), HealthCheckResponse::SERVING);
}

TEST(LeavingTest, NotReadyButServingUntilTheDelayIsOver) {
  ServerProcess server({"--model=tests/golden/llama-tied",
                        "--shutdown_delay=4s", "--drain_timeout=1h"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client client(server.grpc_address());
  EXPECT_EQ(Check(&client, ""), HealthCheckResponse::SERVING);
  server.Signal(SIGTERM);
  WaitForStatus(server, "/health/ready", 503);
  // As long as it leaves, it takes calls.
  for (int taken = 0;; ++taken) {
    const grpc::Status status =
        client.Generate(GreedyRequest({1}, "full", 1)).status;
    if (status.ok()) {
      EXPECT_NE(HttpGet(server.http_address(), "/health/ready").status, 200);
      continue;
    }
    // CANCELLED: it came in the moment in which gRPC shuts down.
    EXPECT_THAT(status.error_code(),
                AnyOf(StatusCode::UNAVAILABLE, StatusCode::CANCELLED));
    EXPECT_GT(taken, 0);
    break;
  }
  EXPECT_EQ(server.Wait(), 0);
  const std::string log = server.Log();
  EXPECT_THAT(log, HasSubstr("leaving delay_seconds=4"));
  EXPECT_LT(log.find(" leaving "), log.find(" drain "));
}

TEST(LeavingTest, ASecondSignalDoesNotWait) {
  ServerProcess server(
      {"--model=tests/golden/llama-tied", "--shutdown_delay=1h"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  server.Signal(SIGTERM);
  WaitForStatus(server, "/health/ready", 503);
  EXPECT_EQ(HttpGet(server.http_address(), "/health/live").status, 200);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 128 + SIGTERM);
}

}  // namespace
}  // namespace strata
