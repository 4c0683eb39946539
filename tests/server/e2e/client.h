#ifndef TESTS_SERVER_E2E_CLIENT_H_
#define TESTS_SERVER_E2E_CLIENT_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "proto/strata.grpc.pb.h"
#include "tests/monitoring/scraped_metrics.h"
#include "tests/server/e2e/server_process.h"

namespace strata {

// A greedy request of token ids that ends at max_tokens.
inline v1::GenerateRequest GreedyRequest(const std::vector<int>& prompt,
                                         const std::string& strategy,
                                         int max_tokens) {
  v1::GenerateRequest request;
  for (const int id : prompt) request.mutable_tokens()->add_ids(id);
  request.mutable_strategy()->set_spec(strategy);
  request.mutable_sampling()->set_temperature(0);
  request.mutable_stopping()->set_max_tokens(max_tokens);
  request.mutable_stopping()->set_ignore_eos(true);
  return request;
}

// What came back from one call of Generate.
struct Generated {
  grpc::Status status;
  std::multimap<std::string, std::string> trailers;
  std::map<int, std::vector<int>> tokens;  // by index
  std::map<int, std::string> text;         // by index
  std::map<int, v1::Done> done;            // by index
  int num_responses = 0;
};

// Each has a connection of its own.
class Client {
 public:
  explicit Client(const std::string& address,
                  const std::shared_ptr<grpc::ChannelCredentials>& credentials =
                      grpc::InsecureChannelCredentials())
      : channel_(NewChannel(address, credentials)),
        inference_(v1::Inference::NewStub(channel_)),
        admin_(v1::Admin::NewStub(channel_)) {}

  // Cancels the call once `cancel_after` tokens have come; 0: never.
  Generated Generate(const v1::GenerateRequest& request, int cancel_after = 0) {
    grpc::ClientContext context;
    return Generate(request, &context, cancel_after);
  }
  Generated Generate(const v1::GenerateRequest& request,
                     grpc::ClientContext* context, int cancel_after = 0) {
    Generated result;
    int num_tokens = 0;
    const auto reader = inference_->Generate(context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
      ++result.num_responses;
      std::vector<int>& tokens = result.tokens[response.index()];
      tokens.insert(tokens.end(), response.token_ids().begin(),
                    response.token_ids().end());
      result.text[response.index()] += response.text();
      if (response.has_done()) result.done[response.index()] = response.done();
      num_tokens += response.token_ids_size();
      if (cancel_after > 0 && num_tokens >= cancel_after) context->TryCancel();
    }
    result.status = reader->Finish();
    for (const auto& [key, value] : context->GetServerTrailingMetadata()) {
      result.trailers.emplace(std::string(key.data(), key.size()),
                              std::string(value.data(), value.size()));
    }
    return result;
  }

  v1::GetLoadResponse GetLoad() {
    grpc::ClientContext context;
    v1::GetLoadResponse load;
    const grpc::Status status = inference_->GetLoad(&context, {}, &load);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return load;
  }

  v1::GetModelResponse GetModel() {
    grpc::ClientContext context;
    v1::GetModelResponse model;
    const grpc::Status status = inference_->GetModel(&context, {}, &model);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return model;
  }

  grpc::Status Switch(const std::string& request_id, const std::string& spec,
                      bool recompute, v1::SwitchStrategyResponse* response) {
    grpc::ClientContext context;
    v1::SwitchStrategyRequest request;
    request.set_request_id(request_id);
    request.set_spec(spec);
    request.set_recompute(recompute);
    return admin_->SwitchStrategy(&context, request, response);
  }

  // Ends every live request with this label; their number.
  uint32_t Abort(const std::string& request_id) {
    grpc::ClientContext context;
    v1::AbortRequest request;
    request.set_request_id(request_id);
    v1::AbortResponse response;
    EXPECT_TRUE(inference_->Abort(&context, request, &response).ok());
    return response.aborted();
  }

  // Waits until `running` and `waiting` requests are there; false after 20 s.
  bool WaitForLoad(uint32_t running, uint32_t waiting) {
    for (int i = 0; i < 2000; ++i) {
      const v1::GetLoadResponse load = GetLoad();
      if (load.running() == running && load.waiting() == waiting) return true;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return false;
  }

  v1::Inference::Stub& inference() { return *inference_; }
  v1::Admin::Stub& admin() { return *admin_; }
  const std::shared_ptr<grpc::Channel>& channel() { return channel_; }

 private:
  static std::shared_ptr<grpc::Channel> NewChannel(
      const std::string& address,
      const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, credentials, arguments);
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Inference::Stub> inference_;
  std::unique_ptr<v1::Admin::Stub> admin_;
};

inline ScrapedMetrics Scrape(const ServerProcess& server) {
  return ScrapedMetrics(HttpGet(server.http_address(), "/metrics").body);
}

// The golden answers of a model of tests/golden.
struct GoldenAnswers {
  explicit GoldenAnswers(const std::string& model)
      : directory("tests/golden/" + model) {
    std::ifstream(directory + "/golden.json") >> json;
    prompt = json["prompt"].get<std::vector<int>>();
  }
  std::vector<int> Greedy(const std::string& strategy) const {
    return json["plans"][strategy]["greedy"].get<std::vector<int>>();
  }
  // Whether f32 in another order of sums gives the same tokens for sure.
  bool IsClear(const std::string& strategy) const {
    return json["plans"][strategy]["min_margin"].get<double>() > 0.02;
  }

  std::string directory;
  nlohmann::json json;
  std::vector<int> prompt;
};

}  // namespace strata

#endif  // TESTS_SERVER_E2E_CLIENT_H_
