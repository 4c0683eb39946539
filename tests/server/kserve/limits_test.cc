// What one client may make the server hold: readers that do not read, requests
// on one stream, answers that are too large.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "monitoring/metrics_page.h"
#include "server/admission.h"
#include "server/kserve/kserve_service.h"
#include "server/kserve/proto/grpc_service.grpc.pb.h"
#include "tests/monitoring/scraped_metrics.h"
#include "tests/server/served_tiny_model.h"
#include "tests/testing/loopback_server.h"

namespace strata::kserve {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

void AddInput(const std::string& name, const std::string& datatype,
              const std::string& raw, inference::ModelInferRequest* request) {
  auto* input = request->add_inputs();
  input->set_name(name);
  input->set_datatype(datatype);
  input->add_shape(1);
  request->add_raw_input_contents(raw);
}

// Raw contents of one element of BYTES.
std::string Element(const std::string& bytes) {
  const auto size = static_cast<uint32_t>(bytes.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) +
         bytes;
}

// Its answer has some 1,400 bytes for each token of each sequence.
inference::ModelInferRequest Wordy(const std::string& id, bool is_streamed,
                                   int n, int max_tokens) {
  inference::ModelInferRequest request;
  request.set_model_name("tiny");
  request.set_id(id);
  AddInput("text_input", "BYTES", Element("A"), &request);
  AddInput("sampling_parameters", "BYTES",
           Element(absl::StrCat(R"({"temperature": 0, "ignore_eos": true, )",
                                R"("logprobs": 20, "n": )", n,
                                R"(, "max_tokens": )", max_tokens, "}")),
           &request);
  AddInput("return_logprobs", "BOOL", std::string(1, '\1'), &request);
  AddInput("stream", "BOOL", std::string(1, is_streamed ? '\1' : '\0'),
           &request);
  return request;
}

class Server {
 public:
  explicit Server(const AdmissionLimits& limits = {},
                  const InferStream::Options& options = {})
      : admission_(&state_, nullptr, limits), service_(&admission_, options) {
    state_.Publish(&served_.model);
    std::string address;
    server_ = StartOnLoopback({&service_}, &address);
    // A call gets 64 KiB more than it was read.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub = inference::GRPCInferenceService::NewStub(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments));
  }
  ~Server() { server_->Shutdown(); }

  grpc::Status Infer(const inference::ModelInferRequest& request,
                     inference::ModelInferResponse* response) {
    grpc::ClientContext context;
    return stub->ModelInfer(&context, request, response);
  }

  // Requests that the engine has finished.
  double NumFinished() {
    MetricsPage page;
    page.Publish(served_.tiny.metrics.get());
    return ScrapedMetrics(page.Render()).Sum("strata_request_finished_total");
  }
  void WaitForFinished(int count) {
    while (NumFinished() < count) absl::SleepFor(absl::Milliseconds(2));
  }
  bool WaitForCalls(absl::Duration limit) {
    return admission_.WaitForCalls(limit);
  }

  std::unique_ptr<inference::GRPCInferenceService::Stub> stub;

 private:
  ServedTinyModel served_;
  ServingState state_;
  Admission admission_;
  KServeService service_;
  std::unique_ptr<grpc::Server> server_;
};

class Stream {
 public:
  explicit Stream(Server* server)
      : stream_(server->stub->ModelStreamInfer(&context_)) {}

  void Write(const inference::ModelInferRequest& request) {
    EXPECT_TRUE(stream_->Write(request));
  }
  // The next response; false at the end.
  bool Read(inference::ModelStreamInferResponse* response) {
    return stream_->Read(response);
  }
  // Reads to the end: how many final responses and errors there are.
  grpc::Status ReadAll(int* num_final, int* num_errors) {
    stream_->WritesDone();
    inference::ModelStreamInferResponse response;
    while (Read(&response)) {
      const auto& parameters = response.infer_response().parameters();
      const auto is_final = parameters.find("triton_final_response");
      if (is_final != parameters.end() && is_final->second.bool_param()) {
        ++*num_final;
      }
      if (!response.error_message().empty()) ++*num_errors;
    }
    return stream_->Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<inference::ModelInferRequest,
                                           inference::ModelStreamInferResponse>>
      stream_;
};

TEST(LimitsTest, AReaderThatTakesNothingForTooLongIsCancelled) {
  Server server({}, {.stall_limit = absl::Milliseconds(100)});
  Stream stream(&server);
  stream.Write(Wordy("a", /*is_streamed=*/true, /*n=*/4, /*max_tokens=*/240));
  server.WaitForFinished(1);
  EXPECT_TRUE(server.WaitForCalls(absl::InfiniteDuration()));
  int num_final = 0, num_errors = 0;
  EXPECT_EQ(stream.ReadAll(&num_final, &num_errors).error_code(),
            StatusCode::CANCELLED);
  EXPECT_EQ(num_final, 0);
  inference::ModelInferResponse response;
  EXPECT_TRUE(server.Infer(Wordy("b", false, 1, 2), &response).ok());
}

TEST(LimitsTest, NoMoreRequestsAreReadThanMayLive) {
  Server server({}, {.max_live = 3});
  Stream stream(&server);
  for (int i = 0; i < 10; ++i) {
    stream.Write(Wordy(absl::StrCat(i), true, 1, 240));
  }
  // They end in the engine and live on for their reader.
  server.WaitForFinished(3);
  absl::SleepFor(absl::Milliseconds(200));
  EXPECT_EQ(server.NumFinished(), 3);
  int num_final = 0, num_errors = 0;
  EXPECT_TRUE(stream.ReadAll(&num_final, &num_errors).ok());
  EXPECT_EQ(num_final, 10);
  EXPECT_EQ(num_errors, 0);
  EXPECT_EQ(server.NumFinished(), 10);
}

TEST(LimitsTest, RequestsOfAStreamCountAsCalls) {
  Server server({.max_calls = 2});
  Stream stream(&server);
  for (int i = 0; i < 10; ++i) {
    stream.Write(Wordy(absl::StrCat(i), true, 1, 240));
  }
  server.WaitForFinished(2);
  inference::ModelInferResponse response;
  const grpc::Status status = server.Infer(Wordy("b", false, 1, 2), &response);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("2 calls are live"));
  int num_final = 0, num_errors = 0;
  EXPECT_TRUE(stream.ReadAll(&num_final, &num_errors).ok());
  EXPECT_EQ(num_final + num_errors, 10);
  EXPECT_GE(num_errors, 1);
  EXPECT_TRUE(server.Infer(Wordy("b", false, 1, 2), &response).ok());
}

TEST(LimitsTest, AnAnswerMayBeAsLargeAsTheLimitAndNoLarger) {
  const inference::ModelInferRequest request = Wordy("a", false, 2, 20);
  inference::ModelInferResponse response;
  ASSERT_TRUE(Server().Infer(request, &response).ok());
  const size_t bytes = response.ByteSizeLong();
  EXPECT_TRUE(
      Server({.max_answer_bytes = bytes}).Infer(request, &response).ok());
  Server server({.max_answer_bytes = bytes - 1});
  const grpc::Status status = server.Infer(request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(
      status.error_message(),
      absl::StrCat("the answer has ", bytes, " bytes, a message at most ",
                   bytes - 1, " (--max_message_mib): ask for less at once"));
  EXPECT_TRUE(server.Infer(Wordy("b", false, 1, 2), &response).ok());
}

TEST(LimitsTest, AnAnswerThatIsTooLargeEndsItsRequestOnly) {
  Server server({.max_answer_bytes = 100'000});
  Stream stream(&server);
  stream.Write(Wordy("large", false, 1, 240));
  stream.Write(Wordy("small", false, 1, 10));
  // Each of its responses fits, until they are merged for want of a reader.
  stream.Write(Wordy("merged", true, 8, 240));
  server.WaitForFinished(3);
  std::map<std::string, std::string> ends;  // by id
  stream.Write(Wordy("late", false, 1, 10));
  while (ends.size() < 4) {
    inference::ModelStreamInferResponse response;
    ASSERT_TRUE(stream.Read(&response));
    const inference::ModelInferResponse& answer = response.infer_response();
    EXPECT_EQ(ends.count(answer.id()), 0u) << "a response after its last";
    const auto is_final = answer.parameters().find("triton_final_response");
    if (!response.error_message().empty()) {
      ends[answer.id()] = response.error_message();
    } else if (is_final->second.bool_param()) {
      ends[answer.id()] = "";
    }
  }
  EXPECT_EQ(ends["small"], "");
  EXPECT_EQ(ends["late"], "");
  EXPECT_THAT(ends["large"], HasSubstr("a message at most 100000"));
  EXPECT_THAT(ends["merged"], HasSubstr("a message at most 100000"));
  int num_final = 0, num_errors = 0;
  EXPECT_TRUE(stream.ReadAll(&num_final, &num_errors).ok());
  EXPECT_EQ(num_final + num_errors, 0);
}

}  // namespace
}  // namespace strata::kserve
