// A process's life: loading, serving, draining, and the ways it may fail to
// start.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
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
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int kForever = 30000;  // tokens: minutes
constexpr char kTiny[] = "--model=tests/golden/llama-tied";

// Takes about a second to pack.
std::string SlowToLoad() {
  return ZeroModel{.hidden = 1024,
                   .intermediate = 4096,
                   .layers = 16,
                   .vocab = 32000,
                   .max_positions = 256}
      .Write("slow_to_load");
}

// Waits until something listens there.
void WaitForPort(const std::string& address) {
  while (HttpGet(address, "/health/live").status == 0) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

TEST(LifecycleTest, PortsAreOpenButNotServingWhileLoading) {
  const std::string grpc = absl::StrCat("127.0.0.1:", FreePort());
  const std::string http = absl::StrCat("127.0.0.1:", FreePort());
  ServerProcess server({"--model=" + SlowToLoad(),
                        "--grpc_port=" + grpc.substr(grpc.find(':') + 1),
                        "--http_port=" + http.substr(http.find(':') + 1)});
  WaitForPort(http);
  Client client(grpc);
  const auto health = grpc::health::v1::Health::NewStub(client.channel());

  EXPECT_EQ(HttpGet(http, "/health").status, 503);
  EXPECT_EQ(HttpGet(http, "/health/ready").status, 503);
  EXPECT_EQ(HttpGet(http, "/health/live").status, 200);
  EXPECT_EQ(client.Generate(GreedyRequest({1}, "full", 1)).status.error_code(),
            StatusCode::UNAVAILABLE);
  grpc::ClientContext watch_context;
  const auto watch = health->Watch(&watch_context, HealthCheckRequest());
  HealthCheckResponse response;
  std::vector<HealthCheckResponse::ServingStatus> seen;
  ASSERT_TRUE(watch->Read(&response));
  seen.push_back(response.status());
  {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service("liveness");
    ASSERT_TRUE(health->Check(&context, request, &response).ok());
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  }
  EXPECT_EQ(server.Log().find(" ready "), std::string::npos)
      << "loaded too fast for this test";

  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  EXPECT_EQ(server.grpc_address(), grpc);
  EXPECT_EQ(server.http_address(), http);
  ASSERT_TRUE(watch->Read(&response));
  seen.push_back(response.status());
  EXPECT_EQ(HttpGet(http, "/health").status, 200);
  EXPECT_TRUE(client.Generate(GreedyRequest({1}, "full", 1)).status.ok());

  server.Signal(SIGTERM);
  while (watch->Read(&response)) seen.push_back(response.status());
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_THAT(seen,
              testing::AnyOf(ElementsAre(HealthCheckResponse::NOT_SERVING,
                                         HealthCheckResponse::SERVING,
                                         HealthCheckResponse::NOT_SERVING),
                             // The watch ended before the next look.
                             ElementsAre(HealthCheckResponse::NOT_SERVING,
                                         HealthCheckResponse::SERVING)));
}

TEST(LifecycleTest, SignalWhileLoadingEndsIt) {
  const std::string http = absl::StrCat("127.0.0.1:", FreePort());
  ServerProcess server({"--model=" + SlowToLoad(),
                        "--http_port=" + http.substr(http.find(':') + 1)});
  WaitForPort(http);
  server.Signal(SIGINT);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_EQ(server.out(), "") << "loaded too fast for this test";
  EXPECT_THAT(server.Log(), HasSubstr("stopped while=loading"));
}

TEST(LifecycleTest, DrainLetsStreamsFinishAndRefusesNewOnes) {
  ServerProcess server(
      {"--model=" + ZeroModel().Write("slow"), "--drain_timeout=120s"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client client(server.grpc_address());
  constexpr int kTokens = 300;
  Generated got;
  std::thread stream([&] {
    got = client.Generate(GreedyRequest({1, 2, 3}, "full", kTokens));
  });
  EXPECT_TRUE(client.WaitForLoad(1, 0));
  server.Signal(SIGTERM);
  int ready = 200;
  while (ready == 200) {
    absl::SleepFor(absl::Milliseconds(1));
    ready = HttpGet(server.http_address(), "/health/ready").status;
  }
  EXPECT_EQ(ready, 503) << "it is gone: too few tokens for this test";
  EXPECT_EQ(HttpGet(server.http_address(), "/health/live").status, 200);
  const Generated refused = client.Generate(GreedyRequest({1}, "full", 1));
  EXPECT_EQ(refused.status.error_code(), StatusCode::UNAVAILABLE);
  stream.join();
  EXPECT_TRUE(got.status.ok()) << got.status.error_message();
  EXPECT_EQ(got.tokens.at(0).size(), static_cast<size_t>(kTokens));
  EXPECT_EQ(got.done.count(0), 1u);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_THAT(server.Log(), HasSubstr("drain running=1 waiting=0"));
}

TEST(LifecycleTest, AHangUpIsAStopUnlessItIsIgnored) {
  for (const bool is_ignored : {false, true}) {  // true: nohup
    signal(SIGHUP, is_ignored ? SIG_IGN : SIG_DFL);
    ServerProcess server({kTiny});
    ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
    server.Signal(SIGHUP);
    if (is_ignored) {
      absl::SleepFor(absl::Milliseconds(300));
      EXPECT_THAT(server.Log(), Not(HasSubstr("drain")));
      server.Signal(SIGTERM);
    }
    EXPECT_EQ(server.Wait(), 0);
    EXPECT_THAT(server.Log(), HasSubstr("drained"));
  }
}

TEST(LifecycleTest, WhatIsLeftAfterTheDrainIsCut) {
  ServerProcess server({"--model=" + ZeroModel().Write("slow"),
                        "--kv_memory=512MiB", "--drain_timeout=200ms"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client client(server.grpc_address());
  Generated got;
  std::thread stream([&] {
    got = client.Generate(GreedyRequest({1, 2, 3}, "full", kForever));
  });
  EXPECT_TRUE(client.WaitForLoad(1, 0));
  server.Signal(SIGTERM);
  stream.join();
  EXPECT_EQ(got.status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_FALSE(got.tokens.empty());
  EXPECT_EQ(server.Wait(), 0);
}

TEST(LifecycleTest, IdleConnectionsDoNotHoldTheEndUp) {
  ServerProcess server({kTiny});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  // Answers nothing, not even to GOAWAY.
  const std::string& grpc = server.grpc_address();
  SlowConnections idle(grpc, 3, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  Client client(grpc);
  client.GetLoad();
  const absl::Time begin = absl::Now();
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(3));
}

TEST(LifecycleTest, ManyConnectionsDoNotCloseThePort) {
  rlimit usual = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit low = {.rlim_cur = 100, .rlim_max = usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  ServerProcess server({kTiny});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  const SlowConnections idle(server.grpc_address(), 200, "");
  Client client(server.grpc_address());
  const grpc::Status status =
      client.Generate(GreedyRequest({1, 2, 3}, "full", 2)).status;
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(LifecycleTest, SlowHttpConnectionsDoNotHideThatItLives) {
  ServerProcess server({kTiny});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  for (const char* begun : {"", "GET /heal", "GET / HTTP/1.1\r\nHost: x\r\n"}) {
    SlowConnections slow(server.http_address(), 100, begun);
    const absl::Time begin = absl::Now();
    EXPECT_EQ(HttpGet(server.http_address(), "/health/live").status, 200);
    EXPECT_LT(absl::Now() - begin, absl::Seconds(3)) << begun;
  }
}

TEST(LifecycleTest, SecondSignalEndsItAtOnce) {
  ServerProcess server({"--model=" + ZeroModel().Write("slow"),
                        "--kv_memory=512MiB", "--drain_timeout=1h"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client client(server.grpc_address());
  Generated got;
  std::thread stream([&] {
    got = client.Generate(GreedyRequest({1, 2, 3}, "full", kForever));
  });
  EXPECT_TRUE(client.WaitForLoad(1, 0));
  server.Signal(SIGTERM);
  while (HttpGet(server.http_address(), "/health/ready").status == 200) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 128 + SIGTERM);
  stream.join();
  EXPECT_EQ(got.status.error_code(), StatusCode::UNAVAILABLE);
}

TEST(LifecycleTest, SecondServerOnAPortSaysSo) {
  ServerProcess first({kTiny});
  ASSERT_TRUE(first.WaitUntilListening()) << first.Log();
  for (const bool is_grpc : {true, false}) {
    const std::string taken =
        is_grpc ? first.grpc_address() : first.http_address();
    const std::string flag = is_grpc ? "--grpc_port" : "--http_port";
    ServerProcess second(
        {kTiny, absl::StrCat(flag, "=", taken.substr(taken.find(':') + 1))});
    EXPECT_EQ(second.Wait(), 1);
    EXPECT_EQ(second.Log(), absl::StrCat("strata_server: --host, ", flag,
                                         ": cannot listen on ", taken,
                                         ": Address already in use\n"));
  }
}

// What ServerReflectionInfo answers to list_services, or the error's code.
std::string ListServices(const ServerProcess& server) {
  Client client(server.grpc_address());
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub(
      client.channel());
  const grpc::Slice list_services(std::string("\x3a\x00", 2));  // field 7: ""
  const grpc::ByteBuffer request(&list_services, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  grpc::Status status;
  absl::Notification done;
  stub.UnaryCall(&context,
                 "/grpc.reflection.v1alpha.ServerReflection/"
                 "ServerReflectionInfo",
                 grpc::StubOptions(), &request, &response, [&](grpc::Status s) {
                   status = s;
                   done.Notify();
                 });
  done.WaitForNotification();
  if (!status.ok()) return absl::StrCat("code ", status.error_code());
  grpc::Slice slice;
  EXPECT_TRUE(response.DumpToSingleSlice(&slice).ok());
  return std::string(slice.begin(), slice.end());
}

TEST(LifecycleTest, ReflectionFollowsItsFlag) {
  ServerProcess on({kTiny});
  ASSERT_TRUE(on.WaitUntilListening());
  EXPECT_THAT(ListServices(on), HasSubstr("strata.v1.Inference"));
  EXPECT_THAT(ListServices(on), HasSubstr("grpc.health.v1.Health"));
  ServerProcess off({kTiny, "--reflection=off"});
  ASSERT_TRUE(off.WaitUntilListening());
  EXPECT_EQ(ListServices(off),
            absl::StrCat("code ", StatusCode::UNIMPLEMENTED));
}

TEST(LifecycleTest, PagesOfTheHttpPort) {
  ServerProcess server({kTiny, "--log_format=json"});
  ASSERT_TRUE(server.WaitUntilListening());
  const std::string& http = server.http_address();
  const HttpAnswer metrics = HttpGet(http, "/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_THAT(metrics.head, HasSubstr("version=0.0.4"));
  EXPECT_EQ(HttpGet(http, "/health").body, "ready\n");
  EXPECT_EQ(HttpGet(http, "/health?verbose=1").status, 200);
  EXPECT_EQ(HttpGet(http, "/health/").status, 404);
  EXPECT_EQ(HttpGet(http, "/metrics/../health").status, 200);
  EXPECT_EQ(HttpGet(http, "/etc/passwd").status, 404);
  EXPECT_EQ(HttpRequest(http, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n").body,
            "");
  EXPECT_EQ(HttpRequest(http,
                        "POST /metrics HTTP/1.1\r\nHost: x\r\n"
                        "Content-Length: 2\r\n\r\nhi")
                .status,
            405);
  // Not answered, and not the end of the server.
  HttpRequest(http, absl::StrCat("GET /metrics HTTP/1.1\r\nHost: x\r\nA: ",
                                 std::string(100000, 'a'), "\r\n\r\n"));
  HttpRequest(http, "\x16\x03\x01 nonsense\r\n\r\n");
  EXPECT_EQ(HttpGet(http, "/health").status, 200);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  const std::vector<std::string> lines =
      absl::StrSplit(server.Log(), '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
}

}  // namespace
}  // namespace strata
