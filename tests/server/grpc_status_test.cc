#include "server/grpc_status.h"

#include <gtest/gtest.h>

#include <string>

#include "core/text/utf8.h"

namespace strata {
namespace {

TEST(GrpcStatusTest, EveryCodeKeepsItsName) {
  // The numbers of the two enumerations are those of the gRPC protocol.
  for (int code = 1; code <= 16; ++code) {
    const grpc::Status status =
        ToGrpcStatus(absl::Status(static_cast<absl::StatusCode>(code), "why"));
    EXPECT_EQ(static_cast<int>(status.error_code()), code);
    EXPECT_EQ(status.error_message(), "why");
  }
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
}

TEST(GrpcStatusTest, LongMessagesAreCutAt512Bytes) {
  const auto cut = [](const std::string& message) {
    return ToGrpcStatus(absl::InternalError(message)).error_message();
  };
  EXPECT_EQ(cut(std::string(512, 'x')), std::string(512, 'x'));
  EXPECT_EQ(cut(std::string(513, 'x')), std::string(512, 'x'));
}

TEST(GrpcStatusTest, TheCutSplitsNoCharacter) {
  for (const char* character : {"\u00e9", "\u20ac", "\U0001F600"}) {
    for (int shift = 0; shift < 4; ++shift) {
      std::string message(shift, 'x');
      while (message.size() < 600) message += character;
      const std::string cut =
          ToGrpcStatus(absl::InternalError(message)).error_message();
      EXPECT_LE(cut.size(), 512u);
      EXPECT_GT(cut.size(), 512u - 4);
      EXPECT_EQ(cut, message.substr(0, cut.size()));
      EXPECT_EQ(ValidUtf8Prefix(cut), cut.size());
    }
  }
}

TEST(GrpcStatusTest, WhatIsNoUtf8IsEscaped) {
  for (const std::string& message :
       {std::string("bad \xff end"), "\xe2\x82" + std::string(600, 'x'),
        std::string("\xe2\x82")}) {
    const std::string shown =
        ToGrpcStatus(absl::InternalError(message)).error_message();
    EXPECT_EQ(ValidUtf8Prefix(shown), shown.size());
    EXPECT_LE(shown.size(), 512u);
    EXPECT_NE(shown.find("\\x"), std::string::npos);
  }
}

}  // namespace
}  // namespace strata
