// The service in this process: calls that end while others of theirs live,
// readers that do not read, answers that are too large.
#include "server/vllm/vllm_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/admission.h"
#include "server/vllm/proto/vllm_engine.grpc.pb.h"
#include "tests/server/served_tiny_model.h"
#include "tests/server/vllm/messages.h"
#include "tests/testing/loopback_server.h"

namespace strata::vllm {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;
using ::vllm::grpc::engine::GenerateRequest;
using ::vllm::grpc::engine::GenerateResponse;
using ::vllm::grpc::engine::VllmEngine;

class Server {
 public:
  explicit Server(const AdmissionLimits& limits = {},
                  const GenerateCall::Options& options = {},
                  const TinyEngine::Options& engine = {})
      : served_(engine),
        admission_(&state_, nullptr, limits),
        service_(&admission_, {.model_path = "none", .max_sequences = 64},
                 options) {
    std::string address;
    server_ = StartOnLoopback({&service_}, &address);
    grpc::ChannelArguments arguments;
    // A call gets 64 KiB more than it was read.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub = VllmEngine::NewStub(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments));
    state_.Publish(&served_.model);
  }
  ~Server() { server_->Shutdown(); }

  grpc::Status Generate(const GenerateRequest& request,
                        GenerateResponse* last) {
    grpc::ClientContext context;
    const auto reader = stub->Generate(&context, request);
    while (reader->Read(last)) {
    }
    return reader->Finish();
  }
  void WaitForCalls() {
    EXPECT_TRUE(admission_.WaitForCalls(absl::InfiniteDuration()));
  }
  // Nothing is left of the calls that were.
  void ExpectIdle() {
    WaitForCalls();
    LoadReport load;
    do {
      load = served_.model.engine->GetLoad();
    } while (load.kv_used_bytes + load.kv_reserved_bytes > 0 ||
             load.running + load.waiting > 0);
  }

  std::unique_ptr<VllmEngine::Stub> stub;

 private:
  ServedTinyModel served_;
  ServingState state_;
  Admission admission_;
  VllmService service_;
  std::unique_ptr<grpc::Server> server_;
};

GenerateRequest Greedy(int max_tokens, int n = 1) {
  GenerateRequest request = TokensMessage({3, 4, 5});
  request.set_stream(true);
  auto* params = request.mutable_sampling_params();
  params->set_temperature(0);
  params->set_ignore_eos(true);
  params->set_max_tokens(max_tokens);
  params->set_n(n);
  return request;
}

TEST(VllmServiceTest, PromptLogprobsComeWithTheTokens) {
  Server server;
  GenerateRequest request = Greedy(5);
  GenerateResponse without, with;
  ASSERT_TRUE(server.Generate(request, &without).ok());
  request.set_stream(false);
  request.mutable_sampling_params()->set_prompt_logprobs(2);
  ASSERT_TRUE(server.Generate(request, &with).ok());
  EXPECT_EQ(with.complete().input_logprobs().token_ids_size(), 3);
  EXPECT_LT(with.complete().input_logprobs().token_logprobs(1).value(), 0);
  with.mutable_complete()->clear_input_logprobs();
  EXPECT_EQ(with.SerializeAsString(), without.SerializeAsString());
  server.ExpectIdle();
}

TEST(VllmServiceTest, AScoreWithoutRoomEndsTheCall) {
  // The call itself is one, the scoring of its prompt another.
  Server server({.max_calls = 1});
  GenerateRequest request = Greedy(100);
  request.mutable_sampling_params()->set_prompt_logprobs(0);
  GenerateResponse last;
  const grpc::Status status = server.Generate(request, &last);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_FALSE(last.has_chunk());
  server.ExpectIdle();
  EXPECT_TRUE(server.Generate(Greedy(2), &last).ok());
}

// At any moment of a call: cancelled, aborted, past its deadline.
TEST(VllmServiceTest, EndsOfCallsAtAnyTime) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  Server server;
  const auto ask = [&](int thread) {
    std::mt19937_64 random(kSeed + thread);
    for (int i = 0; i < 40; ++i) {
      GenerateRequest request = Greedy(1 + random() % 60, 1 + random() % 3);
      request.set_request_id(absl::StrCat(thread));
      request.set_stream(random() % 2 == 0);
      if (random() % 2 == 0) {
        request.mutable_sampling_params()->set_prompt_logprobs(random() % 3);
      }
      grpc::ClientContext context;
      const absl::Duration wait = absl::Microseconds(random() % 20'000);
      const int end = random() % 4;
      if (end == 0)
        context.set_deadline(absl::ToChronoTime(absl::Now() + wait));
      const auto reader = server.stub->Generate(&context, request);
      if (end == 1) absl::SleepFor(wait);
      if (end == 1) context.TryCancel();
      if (end == 2) {
        absl::SleepFor(wait);
        grpc::ClientContext abort;
        ::vllm::grpc::engine::AbortRequest ids;
        ::vllm::grpc::engine::AbortResponse nothing;
        ids.add_request_ids(absl::StrCat(thread));
        EXPECT_TRUE(server.stub->Abort(&abort, ids, &nothing).ok());
      }
      GenerateResponse response;
      int num_complete = 0;
      while (reader->Read(&response)) num_complete += response.has_complete();
      const StatusCode code = reader->Finish().error_code();
      if (code == StatusCode::OK) {
        EXPECT_EQ(num_complete, request.sampling_params().n());
      }
      EXPECT_TRUE(code == StatusCode::OK ||
                  (end == 0 && code == StatusCode::DEADLINE_EXCEEDED) ||
                  (end == 1 && code == StatusCode::CANCELLED))
          << code << " after " << end;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(ask, i);
  for (std::thread& thread : threads) thread.join();
  server.ExpectIdle();
}

// Some 170 bytes for each token of each sequence.
GenerateRequest Wordy(int n, int max_tokens) {
  GenerateRequest request = Greedy(max_tokens, n);
  request.mutable_sampling_params()->set_logprobs(20);
  return request;
}

TEST(VllmServiceTest, AReaderThatTakesNothingForTooLongIsCancelled) {
  Server server({}, {.stall_limit = absl::Milliseconds(100)});
  grpc::ClientContext context;
  const auto reader = server.stub->Generate(&context, Wordy(8, 240));
  GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  server.WaitForCalls();
  int num_complete = 0;
  while (reader->Read(&response)) num_complete += response.has_complete();
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::CANCELLED);
  EXPECT_LT(num_complete, 8);
  server.ExpectIdle();
}

TEST(VllmServiceTest, AnAnswerMayBeAsLargeAsTheLimitAndNoLarger) {
  GenerateRequest request = Wordy(1, 30);
  request.set_stream(false);
  GenerateResponse response;
  ASSERT_TRUE(Server().Generate(request, &response).ok());
  const size_t bytes = response.ByteSizeLong();
  EXPECT_TRUE(
      Server({.max_answer_bytes = bytes}).Generate(request, &response).ok());
  Server server({.max_answer_bytes = bytes - 1});
  const grpc::Status status = server.Generate(request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::OUT_OF_RANGE);
  EXPECT_THAT(status.error_message(), HasSubstr("the answer has"));
  server.ExpectIdle();
  EXPECT_TRUE(server.Generate(Greedy(2), &response).ok());
}

TEST(VllmServiceTest, NoTokenizerFilesForAModelThatIsNoFolder) {
  Server server;
  grpc::ClientContext context;
  const auto reader = server.stub->GetTokenizer(&context, {});
  smg::grpc::common::GetTokenizerChunk chunk;
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace strata::vllm
