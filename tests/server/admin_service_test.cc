#include "server/admin_service.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/tiny_server.h"

namespace strata {
namespace {

class AdminServiceTest : public testing::Test {
 protected:
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
  EXPECT_EQ(SwitchCode("mine", "every=2"), StatusCode::UNIMPLEMENTED);
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

TEST_F(AdminServiceTest, PressureIsNotSupportedYet) {
  v1::SetPolicyResponse response;
  v1::SetPolicyRequest demote, threshold;
  demote.set_demote_under_pressure(false);
  threshold.set_pressure_threshold(0.5);
  for (const v1::SetPolicyRequest& request : {demote, threshold}) {
    EXPECT_EQ(SetPolicy(request, &response).error_code(),
              grpc::StatusCode::UNIMPLEMENTED);
  }
}

}  // namespace
}  // namespace strata
