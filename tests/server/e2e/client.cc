#include "tests/server/e2e/client.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace strata {
namespace {

std::shared_ptr<grpc::Channel> NewChannel(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace

v1::GenerateRequest GreedyRequest(const std::vector<int>& prompt,
                                  const std::string& strategy, int max_tokens) {
  v1::GenerateRequest request;
  for (const int id : prompt) request.mutable_tokens()->add_ids(id);
  request.mutable_strategy()->set_spec(strategy);
  request.mutable_sampling()->set_temperature(0);
  request.mutable_stopping()->set_max_tokens(max_tokens);
  request.mutable_stopping()->set_ignore_eos(true);
  return request;
}

Client::Client(const std::string& address,
               const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : channel_(NewChannel(address, credentials)),
      inference_(v1::Inference::NewStub(channel_)),
      admin_(v1::Admin::NewStub(channel_)) {}

Generated Client::Generate(const v1::GenerateRequest& request,
                           int cancel_after) {
  grpc::ClientContext context;
  return Generate(request, &context, cancel_after);
}

Generated Client::Generate(const v1::GenerateRequest& request,
                           grpc::ClientContext* context, int cancel_after) {
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

v1::GetLoadResponse Client::GetLoad() {
  grpc::ClientContext context;
  v1::GetLoadResponse load;
  const grpc::Status status = inference_->GetLoad(&context, {}, &load);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return load;
}

v1::GetModelResponse Client::GetModel() {
  grpc::ClientContext context;
  v1::GetModelResponse model;
  const grpc::Status status = inference_->GetModel(&context, {}, &model);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return model;
}

grpc::Status Client::Switch(const std::string& request_id,
                            const std::string& spec, bool recompute,
                            v1::SwitchStrategyResponse* response) {
  grpc::ClientContext context;
  v1::SwitchStrategyRequest request;
  request.set_request_id(request_id);
  request.set_spec(spec);
  request.set_recompute(recompute);
  return admin_->SwitchStrategy(&context, request, response);
}

uint32_t Client::Abort(const std::string& request_id) {
  grpc::ClientContext context;
  v1::AbortRequest request;
  request.set_request_id(request_id);
  v1::AbortResponse response;
  EXPECT_TRUE(inference_->Abort(&context, request, &response).ok());
  return response.aborted();
}

bool Client::WaitForLoad(uint32_t running, uint32_t waiting) {
  for (int i = 0; i < 2000; ++i) {
    const v1::GetLoadResponse load = GetLoad();
    if (load.running() == running && load.waiting() == waiting) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

ScrapedMetrics Scrape(const ServerProcess& server) {
  return ScrapedMetrics(HttpGet(server.http_address(), "/metrics").body);
}

}  // namespace strata
