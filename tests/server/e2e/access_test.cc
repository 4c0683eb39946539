// Keys: who may call what, over real sockets.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/server/e2e/certificates.h"
#include "tests/server/e2e/client.h"
#include "tests/server/e2e/local_addresses.h"
#include "tests/server/e2e/server_process.h"

namespace strata {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;
using testing::Not;

constexpr char kTiny[] = "--model=tests/golden/llama-tied";
constexpr char kGetModel[] = "/strata.v1.Inference/GetModel";
constexpr char kSetPolicy[] = "/strata.v1.Admin/SetPolicy";
constexpr char kHealth[] = "/grpc.health.v1.Health/Check";
constexpr char kReflection[] =
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

using Metadata = std::vector<std::pair<std::string, std::string>>;

Metadata Bearer(const std::string& key) {
  return {{"authorization", "Bearer " + key}};
}

// Calls `method` with an empty message.
grpc::Status Call(Client* client, const std::string& method,
                  const Metadata& metadata) {
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub(
      client->channel());
  const grpc::Slice empty;
  const grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  for (const auto& [name, value] : metadata) context.AddMetadata(name, value);
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

StatusCode CodeOf(Client* client, const std::string& method,
                  const Metadata& metadata) {
  return Call(client, method, metadata).error_code();
}

std::string KeyFile(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  WriteText(path, text);
  return path;
}

class AccessTest : public testing::Test {
 protected:
  const std::string api_keys_ =
      KeyFile("api_keys", "# of team A\nalpha\n\n  beta  \n");
  const std::string admin_keys_ = KeyFile("admin_keys", "gamma");
};

TEST_F(AccessTest, KeysOpenWhatTheyShould) {
  ServerProcess server({kTiny, "--api_key_file=" + api_keys_,
                        "--admin_key_file=" + admin_keys_});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client client(server.grpc_address());
  struct Case {
    Metadata metadata;
    StatusCode inference;
    StatusCode admin;
  };
  const StatusCode no = StatusCode::UNAUTHENTICATED;
  const StatusCode ok = StatusCode::OK;
  for (const Case& c : std::vector<Case>{
           {{}, no, no},
           {Bearer("alpha"), ok, StatusCode::PERMISSION_DENIED},
           {Bearer("beta"), ok, StatusCode::PERMISSION_DENIED},
           {Bearer("gamma"), ok, ok},
           {{{"x-api-key", "alpha"}}, ok, StatusCode::PERMISSION_DENIED},
           {{{"x-api-key", "gamma"}}, ok, ok},
           {{{"authorization", "bearer alpha"}},
            ok,
            StatusCode::PERMISSION_DENIED},
           {{{"x-api-key", "alpha"}, {"authorization", "Bearer gamma"}},
            ok,
            ok},
           {Bearer("alph"), no, no},
           {Bearer("alphab"), no, no},
           {Bearer("Alpha"), no, no},
           {Bearer("# of team A"), no, no},
           {Bearer(""), no, no},
           {{{"authorization", "alpha"}}, no, no},
           {{{"authorization", "Basic alpha"}}, no, no},
           {{{"x-api-key", ""}}, no, no},
           {{{"x-api-key", "Bearer alpha"}}, no, no}}) {
    const std::string shown =
        c.metadata.empty() ? "nothing" : c.metadata[0].second;
    EXPECT_EQ(CodeOf(&client, kGetModel, c.metadata), c.inference) << shown;
    EXPECT_EQ(CodeOf(&client, kSetPolicy, c.metadata), c.admin) << shown;
    EXPECT_EQ(CodeOf(&client, kHealth, c.metadata), ok) << shown;
    const bool has_key = c.inference == ok;
    EXPECT_EQ(CodeOf(&client, kReflection, c.metadata), has_key ? ok : no)
        << shown;
    EXPECT_EQ(CodeOf(&client, "/no.such.Service/Method", c.metadata),
              has_key ? StatusCode::UNIMPLEMENTED : no)
        << shown;
  }
  EXPECT_THAT(Call(&client, kGetModel, {}).error_message(),
              HasSubstr("authorization: Bearer KEY"));
  EXPECT_EQ(Call(&client, kGetModel, Bearer("delta")).error_message(),
            "the key is unknown");
  EXPECT_GT(Scrape(server).Sum("strata_request_rejected_total",
                               {"reason=\"no_access\""}),
            30);
}

TEST_F(AccessTest, AStreamThatIsRefusedEndsWithoutATokenOrATrace) {
  ServerProcess server({kTiny, "--api_key_file=" + api_keys_});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client client(server.grpc_address());
  const Generated refused = client.Generate(GreedyRequest({1}, "full", 4));
  EXPECT_EQ(refused.status.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(refused.num_responses, 0);
  EXPECT_THAT(server.Log(), Not(HasSubstr("method=Generate")));
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer beta");
  const Generated taken =
      client.Generate(GreedyRequest({1}, "full", 4), &context);
  EXPECT_TRUE(taken.status.ok()) << taken.status.error_message();
  EXPECT_EQ(taken.tokens.at(0).size(), 4u);
}

TEST_F(AccessTest, WithoutKeyFilesThisHostMayDoAll) {
  ServerProcess server({kTiny});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client client(server.grpc_address());
  for (const Metadata& metadata : {Metadata(), Bearer("alpha")}) {
    EXPECT_EQ(CodeOf(&client, kGetModel, metadata), StatusCode::OK);
    EXPECT_EQ(CodeOf(&client, kSetPolicy, metadata), StatusCode::OK);
  }
}

TEST_F(AccessTest, WithoutAnAdminKeyOtherHostsMayNotAdminister) {
  const std::vector<std::string> addresses = LocalAddressesButLoopback();
  if (addresses.empty()) GTEST_SKIP() << "this host has the loopback only";
  for (const bool has_api_keys : {false, true}) {
    std::vector<std::string> flags = {kTiny, "--host=0.0.0.0"};
    if (has_api_keys) flags.push_back("--api_key_file=" + api_keys_);
    ServerProcess server(flags);
    ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
    const std::string port =
        server.grpc_address().substr(server.grpc_address().rfind(':'));
    Client other(addresses[0] + port);
    EXPECT_EQ(CodeOf(&other, kGetModel, Bearer("alpha")), StatusCode::OK);
    const grpc::Status refused = Call(&other, kSetPolicy, Bearer("alpha"));
    EXPECT_EQ(refused.error_code(), StatusCode::PERMISSION_DENIED);
    EXPECT_THAT(refused.error_message(), HasSubstr("--admin_key_file"));
    EXPECT_EQ(
        CodeOf(&other, "/strata.v1.Admin/SwitchStrategy", Bearer("alpha")),
        StatusCode::PERMISSION_DENIED);
    Client here("127.0.0.1" + port);
    EXPECT_EQ(CodeOf(&here, kSetPolicy, Bearer("alpha")), StatusCode::OK);
  }
  ServerProcess server(
      {kTiny, "--host=0.0.0.0", "--admin_key_file=" + admin_keys_});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client other(addresses[0] +
               server.grpc_address().substr(server.grpc_address().rfind(':')));
  EXPECT_EQ(CodeOf(&other, kSetPolicy, Bearer("gamma")), StatusCode::OK);
}

TEST_F(AccessTest, AnAdminKeyAloneLeavesTheRestOpen) {
  ServerProcess server({kTiny, "--admin_key_file=" + admin_keys_});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client client(server.grpc_address());
  EXPECT_EQ(CodeOf(&client, kGetModel, {}), StatusCode::OK);
  EXPECT_EQ(CodeOf(&client, kSetPolicy, {}), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(CodeOf(&client, kSetPolicy, Bearer("gamma")), StatusCode::OK);
}

TEST_F(AccessTest, KeysAreReadAnew) {
  ServerProcess server({kTiny, "--api_key_file=" + api_keys_});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client client(server.grpc_address());
  const auto wait_for = [&](const std::string& text) {
    while (server.Log().find(text) == std::string::npos) {
      absl::SleepFor(absl::Milliseconds(5));
    }
  };
  EXPECT_EQ(CodeOf(&client, kGetModel, Bearer("alpha")), StatusCode::OK);
  EXPECT_EQ(CodeOf(&client, kGetModel, Bearer("delta")),
            StatusCode::UNAUTHENTICATED);
  WriteText(api_keys_, "delta\n");
  wait_for("INFO reloaded what=keys");
  EXPECT_EQ(CodeOf(&client, kGetModel, Bearer("delta")), StatusCode::OK);
  EXPECT_EQ(CodeOf(&client, kGetModel, Bearer("alpha")),
            StatusCode::UNAUTHENTICATED);
  // What cannot be right takes no key away, and opens nothing.
  WriteText(api_keys_, "# none\n");
  wait_for("--api_key_file: holds no key");
  WriteText(api_keys_, "two words\n");
  wait_for("--api_key_file: line 1: a key is printable ASCII without spaces");
  ASSERT_EQ(remove(api_keys_.c_str()), 0);
  wait_for("cannot be read");
  EXPECT_EQ(CodeOf(&client, kGetModel, Bearer("delta")), StatusCode::OK);
  EXPECT_EQ(CodeOf(&client, kGetModel, {}), StatusCode::UNAUTHENTICATED);
  for (const char* secret : {"alpha", "beta", "delta", "two words"}) {
    EXPECT_THAT(server.Log(), Not(HasSubstr(secret)));
  }
}

TEST_F(AccessTest, MetricsNeedAKeyIfToldSo) {
  ServerProcess server({kTiny, "--api_key_file=" + api_keys_,
                        "--admin_key_file=" + admin_keys_,
                        "--metrics_need_key"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  const auto get = [&](const std::string& headers) {
    return HttpRequest(
        server.http_address(),
        absl::StrCat("GET /metrics HTTP/1.1\r\nHost: x\r\n", headers, "\r\n"));
  };
  EXPECT_EQ(get("").status, 401);
  EXPECT_THAT(get("").head, HasSubstr("WWW-Authenticate: Bearer"));
  EXPECT_EQ(get("Authorization: Bearer delta\r\n").status, 401);
  EXPECT_EQ(get("Authorization: Bearer alpha\r\n").status, 200);
  EXPECT_EQ(get("X-API-Key: gamma\r\n").status, 200);
  EXPECT_EQ(HttpGet(server.http_address(), "/health/live").status, 200);
  EXPECT_EQ(HttpGet(server.http_address(), "/health/ready").status, 200);
}

TEST_F(AccessTest, ByDefaultMetricsNeedNone) {
  ServerProcess server({kTiny, "--api_key_file=" + api_keys_});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  EXPECT_EQ(HttpGet(server.http_address(), "/metrics").status, 200);
}

TEST_F(AccessTest, HugeKeysAreRefused) {
  ServerProcess server({kTiny, "--api_key_file=" + api_keys_});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  for (const size_t size : {size_t{1000}, size_t{15000}, size_t{1000000}}) {
    Client client(server.grpc_address());
    const std::string key(size, 'a');
    EXPECT_EQ(CodeOf(&client, kGetModel, Bearer(key)),
              size < 16000 ? StatusCode::UNAUTHENTICATED
                           : StatusCode::RESOURCE_EXHAUSTED)
        << size;
  }
  // As many as metadata holds: the last counts too.
  Metadata many(200, {"x-api-key", "wrong"});
  Client client(server.grpc_address());
  EXPECT_EQ(CodeOf(&client, kGetModel, many), StatusCode::UNAUTHENTICATED);
  many.back().second = "alpha";
  EXPECT_EQ(CodeOf(&client, kGetModel, many), StatusCode::OK);
}

}  // namespace
}  // namespace strata
