#include "client/admin_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tests/testing/loopback_server.h"

namespace strata {
namespace {

using ::testing::HasSubstr;

// Answers on a loopback port and keeps what came last.
class FakeAdmin : public v1::Admin::Service {
 public:
  FakeAdmin() {
    std::string address;
    server_ = StartOnLoopback({this}, &address);
    auto opened = Connection::Open({.address = address});
    EXPECT_TRUE(opened.ok());
    connection = *std::move(opened);
  }
  ~FakeAdmin() override { server_->Shutdown(); }

  grpc::Status SwitchStrategy(grpc::ServerContext*,
                              const v1::SwitchStrategyRequest* request,
                              v1::SwitchStrategyResponse* response) override {
    switched = *request;
    response->set_canonical("every=2");
    response->set_freed_bytes(2048);
    return request->spec() == "bad"
               ? grpc::Status(grpc::StatusCode::NOT_FOUND, "no such request")
               : grpc::Status::OK;
  }
  grpc::Status SetPolicy(grpc::ServerContext*,
                         const v1::SetPolicyRequest* request,
                         v1::SetPolicyResponse* response) override {
    policy = *request;
    v1::StrategyInfo* info = response->add_strategies();
    info->set_name("default");
    info->set_canonical("full");
    info->set_kv_bytes_per_token(1536);
    info->set_max_resident_tokens(700);
    response->set_demote_under_pressure(true);
    response->set_pressure_threshold(0.75);
    return grpc::Status::OK;
  }

  std::unique_ptr<Connection> connection;
  v1::SwitchStrategyRequest switched;
  v1::SetPolicyRequest policy;

 private:
  std::unique_ptr<grpc::Server> server_;
};

std::string Shown(const FakeAdmin& server,
                  const std::vector<std::string>& words,
                  const AdminFlags& flags = {}) {
  const auto command = ParseAdminCommand(words, flags);
  EXPECT_TRUE(command.ok()) << command.status();
  std::string shown;
  const grpc::Status status =
      RunAdminCommand(*server.connection, *command, &shown);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return shown;
}

TEST(AdminCommandTest, SwitchesARequest) {
  FakeAdmin server;
  EXPECT_EQ(Shown(server, {"switch", "mine", "keep=0.5"}),
            "switched to every=2, freed 2.00 KiB\n");
  EXPECT_EQ(server.switched.request_id(), "mine");
  EXPECT_EQ(server.switched.spec(), "keep=0.5");
  EXPECT_FALSE(server.switched.recompute());
  Shown(server, {"switch", "mine", "full"}, {.recompute = true});
  EXPECT_TRUE(server.switched.recompute());
}

TEST(AdminCommandTest, ChangesTheDefault) {
  FakeAdmin server;
  EXPECT_EQ(Shown(server, {"default", "keep=0.5"}),
            "requests to come run under every=2 unless they say otherwise\n");
  EXPECT_EQ(server.switched.request_id(), "");
  EXPECT_EQ(server.switched.spec(), "keep=0.5");
}

TEST(AdminCommandTest, RegistersNames) {
  FakeAdmin server;
  const std::string shown =
      Shown(server, {"register", "half=every=2", "two=leaders=0,4"});
  EXPECT_THAT(shown, HasSubstr("default       1.50 KiB  700 tokens  full\n"));
  ASSERT_EQ(server.policy.register_strategies_size(), 2);
  EXPECT_EQ(server.policy.register_strategies(0).name(), "half");
  EXPECT_EQ(server.policy.register_strategies(0).spec(), "every=2");
  EXPECT_EQ(server.policy.register_strategies(1).name(), "two");
  EXPECT_EQ(server.policy.register_strategies(1).spec(), "leaders=0,4");
  EXPECT_FALSE(server.policy.has_demote_under_pressure());
  EXPECT_FALSE(server.policy.has_pressure_threshold());
}

TEST(AdminCommandTest, SetsOnlyWhatThePolicyNames) {
  FakeAdmin server;
  Shown(server, {"policy"}, {.demote_under_pressure = false});
  EXPECT_TRUE(server.policy.has_demote_under_pressure());
  EXPECT_FALSE(server.policy.demote_under_pressure());
  EXPECT_FALSE(server.policy.has_pressure_threshold());
  Shown(server, {"policy"}, {.pressure_threshold = 0.75});
  EXPECT_FALSE(server.policy.has_demote_under_pressure());
  EXPECT_EQ(server.policy.pressure_threshold(), 0.75);
}

TEST(AdminCommandTest, APolicyWithoutFlagsIsRead) {
  FakeAdmin server;
  EXPECT_THAT(Shown(server, {"policy"}),
              HasSubstr("demote_under_pressure true, pressure_threshold 0.75"));
  EXPECT_EQ(server.policy.ByteSizeLong(), 0u);
}

TEST(AdminCommandTest, TheServersRefusalIsHandedOn) {
  FakeAdmin server;
  const auto command = ParseAdminCommand({"switch", "mine", "bad"}, {});
  ASSERT_TRUE(command.ok());
  std::string shown;
  const grpc::Status status =
      RunAdminCommand(*server.connection, *command, &shown);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(shown, "");
}

TEST(AdminCommandTest, WhatIsWrongIsSaid) {
  const AdminFlags recompute = {.recompute = true};
  const AdminFlags demote = {.demote_under_pressure = true};
  const AdminFlags threshold = {.pressure_threshold = 0.5};
  struct Case {
    std::vector<std::string> words;
    AdminFlags flags;
    std::string says;
  };
  for (const Case& c : std::vector<Case>{
           {{}, {}, "a verb is missing"},
           {{"swich"}, {}, "no verb 'swich'"},
           {{"switch"}, {}, "switch needs REQUEST_ID STRATEGY"},
           {{"switch", "full"}, {}, "switch needs REQUEST_ID STRATEGY"},
           {{"switch", "", "full"}, {}, "switch needs REQUEST_ID STRATEGY"},
           {{"switch", "a", "b", "c"}, {}, "switch needs REQUEST_ID STRATEGY"},
           {{"default"}, {}, "default needs STRATEGY"},
           {{"default", "a", "b"}, {}, "default needs STRATEGY"},
           {{"register"}, {}, "register needs NAME=STRATEGY"},
           {{"register", "half"}, {}, "'half' is no NAME=STRATEGY"},
           {{"register", "a=full", "=full"}, {}, "'=full' is no NAME=STRATEGY"},
           {{"register", "half="}, {}, "'half=' is no NAME=STRATEGY"},
           {{"policy", "x"}, demote, "policy takes flags only, not 'x'"},
           {{"default", "full"}, recompute, "--recompute belongs to switch"},
           {{"policy"}, recompute, "--recompute belongs to switch"},
           {{"switch", "a", "full"}, demote, "belong to policy"},
           {{"register", "a=full"}, threshold, "belong to policy"}}) {
    const auto command = ParseAdminCommand(c.words, c.flags);
    ASSERT_FALSE(command.ok()) << c.says;
    EXPECT_THAT(std::string(command.status().message()), HasSubstr(c.says));
  }
}

}  // namespace
}  // namespace strata
