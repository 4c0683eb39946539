#ifndef TESTS_SERVER_REQUEST_FIXTURE_H_
#define TESTS_SERVER_REQUEST_FIXTURE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "server/grpc_status.h"
#include "server/request.h"
#include "tests/server/served_tiny_model.h"

namespace strata {
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr int kVocab = 384;  // of llama-tied

using Change = std::function<void(v1::GenerateRequest*)>;

class RequestTest : public testing::Test {
 protected:
  static v1::GenerateRequest Minimal() {
    v1::GenerateRequest message;
    message.mutable_tokens()->add_ids(3);
    message.mutable_tokens()->add_ids(kVocab - 1);
    return message;
  }
  absl::StatusOr<Request> Parse(const v1::GenerateRequest& message) {
    return ToRequest(served_.model, message, absl::InfiniteFuture());
  }
  absl::StatusOr<Request> Parse(const Change& change) {
    v1::GenerateRequest message = Minimal();
    change(&message);
    return Parse(message);
  }
  // The message says `words`.
  void ExpectRefused(const Change& change, absl::StatusCode code,
                     const std::string& words) {
    const absl::StatusOr<Request> request = Parse(change);
    ASSERT_FALSE(request.ok()) << words;
    EXPECT_EQ(request.status().code(), code) << request.status();
    const grpc::Status shown = ToGrpcStatus(request.status());
    EXPECT_NE(shown.error_message().find(words), std::string::npos)
        << shown.error_message() << "\nlacks: " << words;
  }
  void ExpectInvalid(const Change& change, const std::string& words) {
    ExpectRefused(change, absl::StatusCode::kInvalidArgument, words);
  }

  ServedTinyModel served_;
};

}  // namespace strata

#endif  // TESTS_SERVER_REQUEST_FIXTURE_H_
