#include "client/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/client/fake_inference.h"

namespace strata {
namespace {

using ::testing::HasSubstr;

v1::GenerateRequest Request(uint32_t max_tokens) {
  v1::GenerateRequest request;
  request.mutable_stopping()->set_max_tokens(max_tokens);
  return request;
}

TEST(GeneratorTest, StreamsAndMeasures) {
  FakeInference server;
  server.pause_ms = 2;
  const auto connection = Connection::Open(server.Options());
  ASSERT_TRUE(connection.ok());
  Generator generator;
  std::string streamed;
  const GenerationResult result = generator.Run(
      **connection, Request(5), "hello", "be brief", PromptMode::kChatOrText,
      [&](std::string_view text) { streamed += text; });
  ASSERT_TRUE(result.status.ok());
  EXPECT_EQ(streamed, "t0 t1 t2 t3 t4 ");
  EXPECT_EQ(result.texts, std::vector<std::string>{streamed});
  EXPECT_EQ(result.num_tokens, 5);
  EXPECT_EQ(result.done.usage().generated_tokens(), 5);
  EXPECT_FALSE(result.fell_back_to_text);
  EXPECT_GT(result.first_token_s, 0);
  EXPECT_GT(result.last_token_s, result.first_token_s);
  EXPECT_GE(result.seconds, result.last_token_s);
  EXPECT_DOUBLE_EQ(result.DecodeTokensPerSecond(),
                   4 / (result.last_token_s - result.first_token_s));
  const v1::GenerateRequest seen = server.requests().at(0);
  ASSERT_EQ(seen.chat().messages_size(), 2);
  EXPECT_EQ(seen.chat().messages(0).role(), "system");
  EXPECT_EQ(seen.chat().messages(0).content(), "be brief");
  EXPECT_EQ(seen.chat().messages(1).role(), "user");
  EXPECT_EQ(seen.chat().messages(1).content(), "hello");
}

TEST(GeneratorTest, FallsBackToTextOnlyWhenAllowed) {
  FakeInference server;
  server.has_template = false;
  const auto connection = Connection::Open(server.Options());
  Generator generator;
  const auto ignore = [](std::string_view) {};
  GenerationResult result = generator.Run(**connection, Request(1), "hi", "",
                                          PromptMode::kChat, ignore);
  EXPECT_EQ(result.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  result = generator.Run(**connection, Request(1), "hi", "",
                         PromptMode::kChatOrText, ignore);
  EXPECT_TRUE(result.status.ok());
  EXPECT_TRUE(result.fell_back_to_text);
  EXPECT_EQ(server.requests().back().text(), "hi");
  EXPECT_EQ(result.DecodeTokensPerSecond(), 0);  // a single token has no rate
  result = generator.Run(**connection, Request(1), "hi", "", PromptMode::kText,
                         ignore);
  EXPECT_TRUE(result.status.ok());
  EXPECT_FALSE(result.fell_back_to_text);
}

TEST(GeneratorTest, CancelEndsTheRunningCallAndLaterOnes) {
  FakeInference server;
  server.pause_ms = 20;
  const auto connection = Connection::Open(server.Options());
  Generator generator;
  bool cancelled = false;
  GenerationResult result =
      generator.Run(**connection, Request(500), "hi", "", PromptMode::kText,
                    [&](std::string_view) {
                      if (!cancelled) generator.Cancel();
                      cancelled = true;
                    });
  EXPECT_EQ(result.status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_LT(result.num_tokens, 500);
  result = generator.Run(**connection, Request(5), "hi", "", PromptMode::kText,
                         [](std::string_view) {});
  EXPECT_EQ(result.status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST(ConnectionTest, ErrorsAreOneLine) {
  FakeInference server;
  server.refuse_every = 1;
  const auto connection = Connection::Open(server.Options());
  Generator generator;
  const GenerationResult result =
      generator.Run(**connection, Request(1), "hi", "", PromptMode::kText,
                    [](std::string_view) {});
  EXPECT_EQ((*connection)->ErrorLine(result.status),
            "RESOURCE_EXHAUSTED: queue full");
}

TEST(ConnectionTest, SaysSoWhenNobodyAnswers) {
  std::string address;
  {
    FakeInference server;  // its port is free again afterwards
    address = server.Options().address;
  }
  const auto connection = Connection::Open({.address = address});
  Generator generator;
  const GenerationResult result =
      generator.Run(**connection, Request(1), "hi", "", PromptMode::kText,
                    [](std::string_view) {});
  const std::string line = (*connection)->ErrorLine(result.status);
  EXPECT_THAT(line, HasSubstr("is it running? ./strata serve"));
  EXPECT_THAT(line, HasSubstr(address));
}

TEST(ConnectionTest, ALoadingServerIsNotCalledAbsent) {
  const auto connection = Connection::Open({});
  EXPECT_EQ(
      (*connection)->ErrorLine({grpc::StatusCode::UNAVAILABLE, "loading"}),
      "UNAVAILABLE: loading");
}

TEST(ConnectionTest, NamesTheFlagOfAKeyThatIsMissing) {
  const auto connection = Connection::Open({});
  EXPECT_EQ((*connection)
                ->ErrorLine({grpc::StatusCode::UNAUTHENTICATED,
                             "a key is "
                             "needed"}),
            "UNAUTHENTICATED: a key is needed (--api_key_file)");
}

TEST(ConnectionTest, SendsTheFirstKeyOfTheFile) {
  const std::string path = ::testing::TempDir() + "/keys";
  std::ofstream(path) << "# comment\n\n  secret-1  \nsecret-2\n";
  FakeInference server;
  ConnectionOptions options = server.Options();
  options.api_key_file = path;
  const auto connection = Connection::Open(options);
  ASSERT_TRUE(connection.ok());
  Generator generator;
  generator.Run(**connection, Request(1), "hi", "", PromptMode::kText,
                [](std::string_view) {});
  EXPECT_EQ(server.last_authorization(), "Bearer secret-1");
}

TEST(ConnectionTest, RefusesFilesThatHoldNoKey) {
  const std::string path = ::testing::TempDir() + "/no_keys";
  std::ofstream(path) << "# nothing\n";
  EXPECT_EQ(Connection::Open({.api_key_file = path}).status().message(),
            path + ": holds no key");
  EXPECT_EQ(Connection::Open({.api_key_file = "/none"}).status().message(),
            "/none: cannot be read");
  EXPECT_EQ(Connection::Open({.tls_ca = "/none"}).status().message(),
            "/none: cannot be read");
}

}  // namespace
}  // namespace strata
