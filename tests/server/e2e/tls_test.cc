// TLS on the gRPC port, with certificates made by openssl.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/connection.h"
#include "tests/server/e2e/certificates.h"
#include "tests/server/e2e/client.h"
#include "tests/server/e2e/server_process.h"

namespace strata {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;
using testing::Not;

constexpr char kTiny[] = "--model=tests/golden/llama-tied";

// Of one call over a connection of its own.
grpc::Status CallOnce(
    const ServerProcess& server,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  Client client(server.grpc_address(), credentials);
  return client.Generate(GreedyRequest({1}, "full", 1)).status;
}

std::vector<std::string> Flags(const Identity& identity) {
  return {kTiny, "--tls_cert=" + identity.cert, "--tls_key=" + identity.key};
}

std::vector<std::string> Flags(const Identity& identity,
                               const Authority& client_ca) {
  std::vector<std::string> flags = Flags(identity);
  flags.push_back("--tls_client_ca=" + client_ca.cert());
  return flags;
}

class TlsTest : public testing::Test {
 protected:
  const Authority ours_{"ours"};
  const Authority other_{"other"};
  const Identity of_server_ = ours_.Issue("server");
};

TEST_F(TlsTest, WhatLibrariesSayOfAPeerIsALineOfTheLog) {
  std::vector<std::string> flags = Flags(of_server_);
  flags.push_back("--log_format=json");
  ServerProcess server(flags);
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  EXPECT_EQ(CallOnce(server, grpc::InsecureChannelCredentials()).error_code(),
            StatusCode::UNAVAILABLE);
  Client client(server.grpc_address(), TlsCredentials(ours_));
  v1::GenerateRequest request;
  request.set_text("\xff");
  EXPECT_EQ(client.Generate(request).status.error_code(),
            StatusCode::INVALID_ARGUMENT);
  std::map<std::string, std::string> messages;  // by event
  for (const absl::string_view line :
       absl::StrSplit(server.Log(), '\n', absl::SkipEmpty())) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line;
    if (json["level"] != "warning") continue;
    messages[json["event"]] = json["message"];
  }
  EXPECT_THAT(messages["grpc"], HasSubstr("andshake"));
  EXPECT_THAT(messages["protobuf"], HasSubstr("UTF-8"));
}

TEST_F(TlsTest, ClientsMustTrustTheServer) {
  ServerProcess server(Flags(of_server_));
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  const grpc::Status trusted = CallOnce(server, TlsCredentials(ours_));
  EXPECT_TRUE(trusted.ok()) << trusted.error_message();
  EXPECT_EQ(CallOnce(server, TlsCredentials(other_)).error_code(),
            StatusCode::UNAVAILABLE);
  EXPECT_EQ(CallOnce(server, grpc::InsecureChannelCredentials()).error_code(),
            StatusCode::UNAVAILABLE);
  // The HTTP port stays plain.
  EXPECT_EQ(HttpGet(server.http_address(), "/health/ready").status, 200);
}

TEST_F(TlsTest, MutualTlsWantsACertificateOfTheRightIssuer) {
  ServerProcess server(Flags(of_server_, ours_));
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  const Identity good = ours_.Issue("client");
  const Identity bad = other_.Issue("client");
  const grpc::Status shown = CallOnce(server, TlsCredentials(ours_, &good));
  EXPECT_TRUE(shown.ok()) << shown.error_message();
  EXPECT_EQ(CallOnce(server, TlsCredentials(ours_, &bad)).error_code(),
            StatusCode::UNAVAILABLE);
  EXPECT_EQ(CallOnce(server, TlsCredentials(ours_)).error_code(),
            StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, NewConnectionsSeeNewFiles) {
  ServerProcess server(Flags(of_server_, ours_));
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  const auto wait_for = [&](const std::string& text) {
    while (server.Log().find(text) == std::string::npos) {
      absl::SleepFor(absl::Milliseconds(5));
    }
  };
  const Identity own = ours_.Issue("client");
  Client old(server.grpc_address(), TlsCredentials(ours_, &own));
  const auto works = [&] {
    return old.Generate(GreedyRequest({1}, "full", 1)).status.ok();
  };
  EXPECT_TRUE(works());
  const Identity renewed = other_.Issue("server");
  WriteText(of_server_.key, ReadText(renewed.key));
  wait_for("kept the old");
  // The key does not fit the certificate for now: the former are served.
  EXPECT_THAT(server.Log(), HasSubstr("--tls_key: does not belong"));
  EXPECT_TRUE(CallOnce(server, TlsCredentials(ours_, &own)).ok());
  WriteText(of_server_.cert, ReadText(renewed.cert));
  wait_for("INFO reloaded what=certificates");
  EXPECT_TRUE(CallOnce(server, TlsCredentials(other_, &own)).ok());
  EXPECT_EQ(CallOnce(server, TlsCredentials(ours_, &own)).error_code(),
            StatusCode::UNAVAILABLE);
  EXPECT_TRUE(works());  // connections that are open stay
  EXPECT_THAT(server.Log(), Not(HasSubstr("PRIVATE")));
}

TEST_F(TlsTest, ClientsIssuerIsReadAnew) {
  const std::string path = absl::StrCat(testing::TempDir(), "/client_ca.pem");
  WriteText(path, ReadText(ours_.cert()));
  std::vector<std::string> flags = Flags(of_server_);
  flags.push_back("--tls_client_ca=" + path);
  ServerProcess server(flags);
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  const Identity before = ours_.Issue("before");
  const Identity after = other_.Issue("after");
  EXPECT_TRUE(CallOnce(server, TlsCredentials(ours_, &before)).ok());
  EXPECT_FALSE(CallOnce(server, TlsCredentials(ours_, &after)).ok());
  WriteText(path, ReadText(other_.cert()));
  while (server.Log().find("reloaded") == std::string::npos) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_FALSE(CallOnce(server, TlsCredentials(ours_, &before)).ok());
  EXPECT_TRUE(CallOnce(server, TlsCredentials(ours_, &after)).ok());
}

TEST_F(TlsTest, KeysAreNeededOnTop) {
  const std::string keys = absl::StrCat(testing::TempDir(), "/tls_keys");
  WriteText(keys, "alpha\n");
  std::vector<std::string> flags = Flags(of_server_);
  flags.push_back("--api_key_file=" + keys);
  ServerProcess server(flags);
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  EXPECT_EQ(CallOnce(server, TlsCredentials(ours_)).error_code(),
            StatusCode::UNAUTHENTICATED);
  Client client(server.grpc_address(), TlsCredentials(ours_));
  grpc::ClientContext context;
  context.AddMetadata("x-api-key", "alpha");
  EXPECT_TRUE(
      client.Generate(GreedyRequest({1}, "full", 1), &context).status.ok());
}

// The programs of client/ all open this connection.
TEST_F(TlsTest, OwnClientsConnectAndSayWhatIsWrong) {
  const std::string keys = absl::StrCat(testing::TempDir(), "/client_keys");
  WriteText(keys, "# mine\nalpha\n");
  std::vector<std::string> flags = Flags(of_server_, ours_);
  flags.push_back("--api_key_file=" + keys);
  ServerProcess server(flags);
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  const Identity own = ours_.Issue("own");
  const ConnectionOptions good = {.address = server.grpc_address(),
                                  .api_key_file = keys,
                                  .tls_ca = ours_.cert(),
                                  .tls_cert = own.cert,
                                  .tls_key = own.key};
  // "" or the line for the user.
  const auto call = [](const ConnectionOptions& options) -> std::string {
    const auto connection = Connection::Open(options);
    if (!connection.ok()) return std::string(connection.status().message());
    grpc::ClientContext context;
    (*connection)->Authorize(&context);
    v1::GetModelResponse model;
    const grpc::Status status =
        (*connection)->stub()->GetModel(&context, {}, &model);
    return status.ok() ? "" : (*connection)->ErrorLine(status);
  };
  EXPECT_EQ(call(good), "");
  ConnectionOptions options = good;
  options.api_key_file = "";
  EXPECT_THAT(call(options), HasSubstr("UNAUTHENTICATED: a key is needed"));
  options = good;
  options.tls_cert = options.tls_key = "";
  EXPECT_THAT(call(options), HasSubstr("no handshake with "));
  options = good;
  options.tls_ca = other_.cert();
  EXPECT_THAT(call(options), HasSubstr("no handshake with "));
  options = good;
  options.tls_ca = options.tls_cert = options.tls_key = "";
  EXPECT_THAT(call(options), HasSubstr("does it want TLS (--tls_ca)?"));
  options = good;
  options.tls_key = "";
  EXPECT_THAT(call(options), HasSubstr("--tls_cert and --tls_key"));
  options = good;
  options.tls_ca = "";
  EXPECT_THAT(call(options), HasSubstr("with --tls_ca"));

  ServerProcess plain({kTiny});
  ASSERT_TRUE(plain.WaitUntilListening()) << plain.Log();
  options = good;
  options.address = plain.grpc_address();
  EXPECT_THAT(call(options), HasSubstr("no handshake with "));
}

// Starts a server that must fail; returns its one line.
std::string FailureOf(const std::vector<std::string>& flags) {
  ServerProcess server(flags);
  EXPECT_EQ(server.Wait(), 1) << server.Log();
  const std::string log = server.Log();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  return log;
}

TEST_F(TlsTest, WrongFilesAreNamedAtTheStart) {
  const Identity good = of_server_;
  const Identity other = ours_.Issue("second");
  const std::string junk = absl::StrCat(testing::TempDir(), "/junk.pem");
  WriteText(junk, "this is no PEM\n");
  EXPECT_THAT(FailureOf({kTiny, "--tls_cert=" + good.cert}),
              HasSubstr("--tls_cert and --tls_key: both are needed"));
  EXPECT_THAT(FailureOf({kTiny, "--tls_key=" + good.key}),
              HasSubstr("--tls_cert and --tls_key: both are needed"));
  EXPECT_THAT(FailureOf({kTiny, "--tls_client_ca=" + ours_.cert()}),
              HasSubstr("--tls_client_ca: needs --tls_cert"));
  EXPECT_THAT(FailureOf(Flags({"/nonexistent", good.key})),
              HasSubstr("/nonexistent: cannot be read"));
  EXPECT_THAT(FailureOf(Flags({good.cert, testing::TempDir()})),
              HasSubstr("cannot be read"));
  EXPECT_THAT(FailureOf(Flags({junk, good.key})),
              HasSubstr("--tls_cert: holds no certificate"));
  EXPECT_THAT(FailureOf(Flags({good.cert, junk})),
              HasSubstr("--tls_key: holds no private key"));
  EXPECT_THAT(FailureOf(Flags({good.cert, other.key})),
              HasSubstr("--tls_key: does not belong to the certificate"));
  std::vector<std::string> flags = Flags(good);
  flags.push_back("--tls_client_ca=" + junk);
  EXPECT_THAT(FailureOf(flags),
              HasSubstr("--tls_client_ca: holds no certificate"));
}

TEST_F(TlsTest, WrongKeyFilesAreNamedAtTheStart) {
  const std::string path = absl::StrCat(testing::TempDir(), "/wrong_keys");
  WriteText(path, "# nobody\n\n");
  EXPECT_THAT(FailureOf({kTiny, "--api_key_file=" + path}),
              HasSubstr("--api_key_file: holds no key"));
  WriteText(path, "fine\nnot fine\n");
  const std::string line = FailureOf({kTiny, "--admin_key_file=" + path});
  EXPECT_THAT(line, HasSubstr("--admin_key_file: line 2: a key is printable"));
  EXPECT_THAT(line, Not(HasSubstr("not fine")));
  EXPECT_THAT(FailureOf({kTiny, "--api_key_file=/nonexistent"}),
              HasSubstr("/nonexistent: cannot be read"));
  EXPECT_THAT(FailureOf({kTiny, "--metrics_need_key"}),
              HasSubstr("--metrics_need_key: needs --api_key_file"));
}

}  // namespace
}  // namespace strata
