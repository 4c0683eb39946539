// Limits of messages and streams, pings, peers that are gone, and what no gRPC
// client would send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/e2e/certificates.h"
#include "tests/server/e2e/client.h"
#include "tests/server/e2e/raw_http2.h"
#include "tests/server/e2e/server_process.h"
#include "tests/server/e2e/text_model.h"
#include "tests/server/e2e/zero_model.h"

namespace strata {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

constexpr char kTiny[] = "--model=tests/golden/llama-tied";

TEST(TransportTest, MessagesMayBeAsLargeAsTheLimitAndNoLarger) {
  ServerProcess server({kTiny, "--max_message_mib=1"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client client(server.grpc_address());
  constexpr size_t kLimit = 1 << 20;
  const auto call = [&](size_t bytes) {
    v1::TokenizeRequest request;
    request.set_text(std::string(kLimit / 2, 'a'));
    // The tag and the length of the text keep their sizes.
    request.set_text(
        std::string(kLimit / 2 + bytes - request.ByteSizeLong(), 'a'));
    EXPECT_EQ(request.ByteSizeLong(), bytes);
    grpc::ClientContext context;
    v1::TokenizeResponse response;
    return client.inference().Tokenize(&context, request, &response);
  };
  // Read, and answered by the service: this model has no tokenizer.
  EXPECT_EQ(call(kLimit).error_code(), StatusCode::FAILED_PRECONDITION);
  const grpc::Status above = call(kLimit + 1);
  EXPECT_EQ(above.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(above.error_message(), HasSubstr("(1048577 vs. 1048576)"));
  EXPECT_EQ(call(kLimit).error_code(), StatusCode::FAILED_PRECONDITION);
}

TEST(TransportTest, AnswersMayBeAsLargeAsTheLimitAndNoLarger) {
  ServerProcess server(
      {"--model=" + WriteTextModel("answers"), "--max_message_mib=1"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client client(server.grpc_address());
  constexpr size_t kLimit = 1 << 20;
  constexpr size_t kHead = 4;  // the tag and the length of the text
  const auto detokenize = [&](const v1::DetokenizeRequest& request,
                              v1::DetokenizeResponse* response) {
    grpc::ClientContext context;
    return client.inference().Detokenize(&context, request, response);
  };
  // Ids of one byte each, and ids of longer texts, so that the request is
  // smaller than its answer.
  v1::TokenizeRequest tokenize;
  tokenize.set_text("a the");
  grpc::ClientContext context;
  v1::TokenizeResponse ids;
  ASSERT_TRUE(client.inference().Tokenize(&context, tokenize, &ids).ok());
  ASSERT_EQ(ids.token_ids_size(), 2);
  const auto call = [&](size_t bytes) {
    constexpr size_t kWordBytes = 4;  // " the"
    v1::DetokenizeRequest request;
    for (size_t i = 0; i < (bytes - kHead) / kWordBytes; ++i) {
      request.add_token_ids(ids.token_ids(1));
    }
    for (size_t i = 0; i < (bytes - kHead) % kWordBytes; ++i) {
      request.add_token_ids(ids.token_ids(0));
    }
    v1::DetokenizeResponse response;
    const grpc::Status status = detokenize(request, &response);
    EXPECT_EQ(response.ByteSizeLong(), status.ok() ? bytes : 0);
    return status;
  };
  EXPECT_TRUE(call(kLimit).ok());
  const grpc::Status above = call(kLimit + 1);
  EXPECT_EQ(above.error_code(), StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(above.error_message(),
            "the answer has 1048577 bytes, a message at most 1048576 "
            "(--max_message_mib): ask for less at once");
  EXPECT_TRUE(call(kLimit).ok());
}

TEST(TransportTest, MoreStreamsThanAllowedWaitOnTheirConnection) {
  ServerProcess server({"--model=" + ZeroModel().Write("streams"),
                        "--kv_memory=512MiB", "--max_concurrent_streams=1"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  Client busy(server.grpc_address());
  Client other(server.grpc_address());
  v1::GenerateRequest request = GreedyRequest({1, 2, 3}, "full", 30000);
  request.set_request_id("long");
  std::thread stream([&] { busy.Generate(request); });
  EXPECT_TRUE(other.WaitForLoad(1, 0));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(200));
  v1::GetLoadResponse load;
  EXPECT_EQ(busy.inference().GetLoad(&context, {}, &load).error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(other.Abort("long"), 1u);
  stream.join();
  EXPECT_TRUE(busy.WaitForLoad(0, 0));
}

// A client that pings each 10 s does it no worse.
TEST(TransportTest, PingsAreAnsweredHoweverMany) {
  ServerProcess server({kTiny});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  RawHttp2 raw(server.grpc_address());
  constexpr int kPings = 200;
  for (int i = 0; i < kPings; ++i) {
    raw.Send({RawHttp2::kPing, 0, 0, absl::StrCat(10000000 + i)});
  }
  int answered = 0;
  while (answered < kPings) {
    const auto frame = raw.Receive();
    ASSERT_TRUE(frame.has_value());
    ASSERT_NE(frame->type, RawHttp2::kGoAway) << frame->payload;
    if (frame->type != RawHttp2::kPing || frame->flags != RawHttp2::kAck) {
      continue;
    }
    EXPECT_EQ(frame->payload, absl::StrCat(10000000 + answered));
    ++answered;
  }
}

TEST(TransportTest, APeerThatIsGoneIsGivenUp) {
  ServerProcess server(
      {kTiny, "--keepalive_time=100ms", "--keepalive_timeout=100ms"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  RawHttp2 gone(server.grpc_address());  // answers no ping
  bool was_asked = false;
  while (const auto frame = gone.Receive()) {
    was_asked |= frame->type == RawHttp2::kPing && frame->flags == 0;
  }
  EXPECT_TRUE(was_asked);
  EXPECT_EQ(HttpGet(server.http_address(), "/health/ready").status, 200);
}

// What came back on `stream` until it ended: frames' payloads; nothing if the
// connection did.
std::string AnswerTo(RawHttp2* raw, uint32_t stream) {
  std::string payloads;
  while (const auto frame = raw->Receive()) {
    if (frame->type == RawHttp2::kGoAway) break;
    if (frame->stream != stream) continue;
    payloads += frame->payload;
    if (frame->type == RawHttp2::kRstStream ||
        (frame->flags & RawHttp2::kEndStream) != 0) {
      return payloads;
    }
  }
  return "";
}

TEST(TransportTest, CompressedMessagesAreNotInflated) {
  ServerProcess server({kTiny, "--max_message_mib=1"});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  const auto resident = [&] {
    return Scrape(server).Sum("process_resident_memory_bytes");
  };
  const double before = resident();
  Client client(server.grpc_address());
  for (const int mib : {0, 128}) {
    for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
      v1::GenerateRequest request = GreedyRequest({1}, "full", 1);
      request.set_request_id(std::string(mib << 20, 'x'));
      grpc::ClientContext context;
      context.set_compression_algorithm(algorithm);
      const grpc::Status status = client.Generate(request, &context).status;
      EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED);
      EXPECT_THAT(status.error_message(), HasSubstr("ompression"));
    }
  }
  EXPECT_LT(resident() - before, 64 << 20);
  EXPECT_TRUE(client.Generate(GreedyRequest({1}, "full", 1)).status.ok());
}

TEST(TransportTest, ACallThatEndsBeforeItsMessageIsNoInvalidRequest) {
  ServerProcess server({kTiny});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  RawHttp2 raw(server.grpc_address());
  uint32_t stream = 1;
  for (const std::string path :
       {"/strata.v1.Inference/Generate", "/strata.v1.Inference/Score",
        "/inference.GRPCInferenceService/ModelInfer",
        "/vllm.grpc.engine.VllmEngine/Generate"}) {
    raw.BeginCall(stream, path);  // cancelled
    raw.Send({RawHttp2::kRstStream, 0, stream, std::string("\0\0\0\x08", 4)});
    stream += 2;
    raw.BeginCall(stream, path);  // in the middle of its message
    raw.Send({RawHttp2::kData, 0, stream, std::string("\0\0\0\1\0ab", 7)});
    raw.Send({RawHttp2::kRstStream, 0, stream, std::string("\0\0\0\x08", 4)});
    stream += 2;
    raw.BeginCall(stream, path);  // closed by its client
    raw.Send({RawHttp2::kData, RawHttp2::kEndStream, stream, ""});
    EXPECT_THAT(AnswerTo(&raw, stream), HasSubstr("no message")) << path;
    stream += 2;
  }
  EXPECT_EQ(Scrape(server).Sum("strata_request_rejected_total"), 0);
  EXPECT_THAT(server.Log(), testing::Not(HasSubstr("cannot be parsed")));

  raw.BeginCall(stream, "/strata.v1.Inference/Generate");
  raw.Send({RawHttp2::kData, RawHttp2::kEndStream, stream,
            std::string("\0\0\0\0\1\xff", 6)});
  EXPECT_THAT(AnswerTo(&raw, stream), HasSubstr("cannot be parsed"));
  EXPECT_EQ(Scrape(server).Sum("strata_request_rejected_total",
                               {"reason=\"invalid\""}),
            1);
}

TEST(TransportTest, MetadataOfAnyBytesOpensNothing) {
  const std::string keys = absl::StrCat(testing::TempDir(), "/raw_keys");
  WriteText(keys, "alpha\n");
  ServerProcess server({kTiny, "--api_key_file=" + keys});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  constexpr char kGetModel[] = "/strata.v1.Inference/GetModel";
  const auto answer = [&](const std::string& path, const std::string& name,
                          const std::string& value) {
    RawHttp2 raw(server.grpc_address());
    raw.SendCall(1, path, {{name, value}});
    return AnswerTo(&raw, 1);
  };
  constexpr char kModel[] = "llama-tied";  // in the answer of GetModel
  ASSERT_THAT(answer(kGetModel, "x-api-key", "alpha"), HasSubstr(kModel));
  for (const std::string& value :
       {std::string("alpha\0", 6), std::string("\0alpha", 6),
        std::string("al\0pha", 6), std::string("alpha\n"),
        std::string("\xff\xfe"), std::string("alpha, alpha"),
        std::string(100, '\0')}) {
    for (const char* name : {"x-api-key", "authorization"}) {
      const std::string prefix =
          std::string(name) == "authorization" ? "Bearer " : "";
      EXPECT_THAT(answer(kGetModel, name, prefix + value),
                  testing::Not(HasSubstr(kModel)));
    }
  }
  for (const char* path :
       {"/grpc.health.v1.Health/../../strata.v1.Inference/GetModel",
        "//strata.v1.Inference/GetModel", "/strata.v1.Inference/GetModel/",
        "/STRATA.v1.Inference/GetModel", "", "*"}) {
    EXPECT_THAT(answer(path, "x", "y"), testing::Not(HasSubstr(kModel)))
        << path;
  }
  EXPECT_THAT(answer(kGetModel, "x-api-key", "alpha"), HasSubstr(kModel));
}

}  // namespace
}  // namespace strata
