#include "server/native/admin_service.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/native/service_fixture.h"
#include "tests/server/native/tiny_server.h"

namespace strata {
namespace {

class AdminServiceTest : public testing::Test {
 protected:
  explicit AdminServiceTest(const TinyEngine::Options& options = {})
      : server_(options) {}

  grpc::Status Switch(const std::string& request_id, const std::string& spec,
                      v1::SwitchStrategyResponse* response) {
    grpc::ClientContext context;
    v1::SwitchStrategyRequest request;
    request.set_request_id(request_id);
    request.set_spec(spec);
    return server_.admin->SwitchStrategy(&context, request, response);
  }
  grpc::StatusCode SwitchCode(const std::string& request_id,
                              const std::string& spec) {
    v1::SwitchStrategyResponse response;
    return Switch(request_id, spec, &response).error_code();
  }
  grpc::Status SetPolicy(const v1::SetPolicyRequest& request,
                         v1::SetPolicyResponse* response) {
    grpc::ClientContext context;
    return server_.admin->SetPolicy(&context, request, response);
  }
  static void Add(const std::string& name, const std::string& spec,
                  v1::SetPolicyRequest* request) {
    request->add_register_strategies()->set_name(name);
    request->mutable_register_strategies()->rbegin()->set_spec(spec);
  }
  // The strategy that a request without one runs under.
  std::string DefaultNow() {
    std::vector<Generated> generated;
    EXPECT_TRUE(
        server_.Generate(TinyServer::Greedy({3}, "", 2), &generated).ok());
    return generated[0].done->usage().strategy();
  }

  TinyServer server_;
};

TEST_F(AdminServiceTest, ChangesTheDefaultForRequestsToCome) {
  EXPECT_EQ(DefaultNow(), "full");
  v1::SwitchStrategyResponse response;
  ASSERT_TRUE(Switch("", "keep=0.5", &response).ok());
  EXPECT_EQ(response.canonical(), "every=2");
  EXPECT_EQ(response.freed_bytes(), 0u);
  EXPECT_EQ(DefaultNow(), "every=2");
  EXPECT_NE(server_.served.tiny.strategies->LabelOf(
                server_.served.tiny.Strategy("every=2")),
            0);
}

TEST_F(AdminServiceTest, ARefusedSwitchChangesNothing) {
  using grpc::StatusCode;
  EXPECT_EQ(SwitchCode("", "every=0"), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(SwitchCode("", ""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(SwitchCode("", "nobody"), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DefaultNow(), "full");
  server_.state.BeginDrain();
  EXPECT_EQ(SwitchCode("", "every=2"), StatusCode::UNAVAILABLE);
}

TEST_F(AdminServiceTest, RegistersNames) {
  v1::SetPolicyRequest request;
  Add("half", "every=2", &request);
  Add("same", "half", &request);  // one of the same call
  v1::SetPolicyResponse response;
  const grpc::Status status = SetPolicy(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.strategies_size(), 3);
  EXPECT_EQ(response.strategies(0).name(), "default");
  EXPECT_EQ(response.strategies(0).canonical(), "full");
  EXPECT_EQ(response.strategies(1).name(), "half");
  EXPECT_EQ(response.strategies(1).canonical(), "every=2");
  EXPECT_EQ(response.strategies(2).name(), "same");
  EXPECT_EQ(response.strategies(2).canonical(), "every=2");
  v1::SwitchStrategyResponse switched;
  ASSERT_TRUE(Switch("", "half", &switched).ok());
  EXPECT_EQ(switched.canonical(), "every=2");
}

TEST_F(AdminServiceTest, RegistersAllOrNothing) {
  v1::SetPolicyResponse response;
  for (const char* name : {"Half", "", "full", "9lives"}) {
    v1::SetPolicyRequest request;
    Add("good", "every=2", &request);
    Add(name, "every=4", &request);
    EXPECT_EQ(SetPolicy(request, &response).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  v1::SetPolicyRequest many;
  for (int i = 0; i < 65; ++i) Add("n" + std::to_string(i), "every=2", &many);
  EXPECT_FALSE(SetPolicy(many, &response).ok());
  EXPECT_TRUE(server_.served.tiny.strategies->registered().empty());
}

TEST_F(AdminServiceTest, SwitchesOfRequestsAreCheckedFirst) {
  using grpc::StatusCode;
  const std::string longest(256, 'r');
  EXPECT_EQ(SwitchCode(longest, "every=2"), StatusCode::NOT_FOUND);
  EXPECT_EQ(SwitchCode(longest + "r", "every=2"), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(SwitchCode("mine", ""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(SwitchCode("mine", "nobody"), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(SwitchCode("mine", "every=2"), StatusCode::NOT_FOUND);
}

TEST_F(AdminServiceTest, ThePolicyIsCheckedFirst) {
  v1::SetPolicyResponse response;
  for (double threshold : {0.0, -0.5, std::nextafter(1.0, 2.0),
                           std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    v1::SetPolicyRequest request;
    request.set_pressure_threshold(threshold);
    Add("good", "every=2", &request);
    const grpc::Status status = SetPolicy(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message().find("pressure_threshold is "), 0u);
  }
  EXPECT_TRUE(server_.served.tiny.strategies->registered().empty());
  for (double threshold : {std::numeric_limits<double>::min(), 0.5, 1.0}) {
    v1::SetPolicyRequest request;
    request.set_pressure_threshold(threshold);
    request.set_demote_under_pressure(threshold == 0.5);
    Add("good", "every=2", &request);
    EXPECT_TRUE(SetPolicy(request, &response).ok()) << threshold;
    EXPECT_EQ(response.strategies_size(), 2);
    v1::SetPolicyResponse read;
    EXPECT_TRUE(SetPolicy({}, &read).ok());
    EXPECT_EQ(read.ShortDebugString(), response.ShortDebugString());
    EXPECT_EQ(read.pressure_threshold(), threshold);
    EXPECT_EQ(read.demote_under_pressure(), threshold == 0.5);
  }
  server_.state.BeginDrain();
  EXPECT_EQ(SetPolicy({}, &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

// One runs at a time, so that its many samples are there for long.
class AdminOfLiveRequestsTest : public AdminServiceTest {
 protected:
  AdminOfLiveRequestsTest() : AdminServiceTest({.max_sequences = 1}) {
    v1::GenerateRequest request = Endless("mine");
    request.set_num_sequences(kSamples);
    reader_ = server_.inference->Generate(&context_, request);
    EXPECT_TRUE(reader_->Read(&first_)) << "it runs";
  }
  // Ends the request; the usage of its last sample.
  v1::Usage UsageAtTheEnd() {
    grpc::ClientContext context;
    v1::AbortRequest abort;
    abort.set_request_id("mine");
    v1::AbortResponse aborted;
    EXPECT_TRUE(server_.inference->Abort(&context, abort, &aborted).ok());
    EXPECT_EQ(aborted.aborted(), 1u);
    v1::Usage usage;
    v1::GenerateResponse response;
    while (reader_->Read(&response)) {
      const bool is_last = response.index() == kSamples - 1;
      if (is_last && response.has_done()) usage = response.done().usage();
    }
    EXPECT_TRUE(reader_->Finish().ok());
    return usage;
  }

  static constexpr uint32_t kSamples = 128;
  grpc::ClientContext context_;
  v1::GenerateResponse first_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader_;
};

TEST_F(AdminOfLiveRequestsTest, SwitchesThem) {
  v1::SwitchStrategyResponse response;
  const grpc::Status status = Switch("mine", "keep=0.5", &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.canonical(), "every=2");
  EXPECT_GT(response.freed_bytes(), 0u);
  ASSERT_TRUE(Switch("mine", "every=2", &response).ok());
  EXPECT_EQ(response.freed_bytes(), 0u) << "nothing to change";
  EXPECT_EQ(SwitchCode("mine", "full"), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(SwitchCode("yours", "every=2"), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(UsageAtTheEnd().strategy(), "every=2");
  server_.WaitUntilIdle();
  EXPECT_EQ(SwitchCode("mine", "every=4"), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(DefaultNow(), "full") << "it stays";
}

TEST_F(AdminOfLiveRequestsTest, RecomputesUnderAnyOther) {
  v1::SwitchStrategyResponse response;
  EXPECT_TRUE(Switch("mine", "every=4", &response).ok());
  grpc::ClientContext context;
  v1::SwitchStrategyRequest request;
  request.set_request_id("mine");
  request.set_spec("prefix=5");
  request.set_recompute(true);
  const grpc::Status status =
      server_.admin->SwitchStrategy(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.canonical(), "prefix=5");
  EXPECT_EQ(UsageAtTheEnd().strategy(), "prefix=5");
}

TEST_F(AdminOfLiveRequestsTest, TheyMayBeSwitchedWhileTheServerDrains) {
  server_.state.BeginDrain();
  EXPECT_EQ(SwitchCode("", "every=2"), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(SwitchCode("mine", "every=2"), grpc::StatusCode::OK);
  EXPECT_EQ(UsageAtTheEnd().strategy(), "every=2");
}

TEST_F(AdminServiceTest, EveryCallIsLogged) {
  EXPECT_EQ(SwitchCode("", "every=2"), grpc::StatusCode::OK);
  EXPECT_EQ(SwitchCode("nobody", "full"), grpc::StatusCode::NOT_FOUND);
  v1::SetPolicyRequest request;
  Add("long", std::string(1000, 'x'), &request);
  v1::SetPolicyResponse response;
  EXPECT_FALSE(SetPolicy(request, &response).ok());
  const std::vector<AdminLog> logs = server_.AdminLogs();
  ASSERT_EQ(logs.size(), 3u);
  EXPECT_EQ(logs[0].method, "SwitchStrategy");
  EXPECT_EQ(logs[0].peer.rfind("ipv4:127.0.0.1:", 0), 0u) << logs[0].peer;
  EXPECT_EQ(logs[0].change, R"(spec: "every=2")");
  EXPECT_TRUE(logs[0].status.ok());
  EXPECT_EQ(logs[1].change, R"(request_id: "nobody" spec: "full")");
  EXPECT_TRUE(absl::IsNotFound(logs[1].status));
  EXPECT_EQ(logs[2].method, "SetPolicy");
  EXPECT_EQ(logs[2].change.size(), 512u);
  EXPECT_TRUE(absl::IsInvalidArgument(logs[2].status));
}

}  // namespace
}  // namespace strata
