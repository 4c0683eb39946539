#include "tests/client/fake_inference.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/testing/loopback_server.h"

namespace strata {

FakeInference::FakeInference() { server_ = StartOnLoopback({this}, &address_); }

FakeInference::~FakeInference() { server_->Shutdown(); }

std::vector<v1::GenerateRequest> FakeInference::requests() const {
  absl::MutexLock lock(&mu_);
  return requests_;
}

std::string FakeInference::last_authorization() const {
  absl::MutexLock lock(&mu_);
  return last_authorization_;
}

grpc::Status FakeInference::Generate(
    grpc::ServerContext* context, const v1::GenerateRequest* request,
    grpc::ServerWriter<v1::GenerateResponse>* writer) {
  {
    absl::MutexLock lock(&mu_);
    requests_.push_back(*request);
    const auto key = context->client_metadata().find("authorization");
    if (key != context->client_metadata().end()) {
      last_authorization_ = {key->second.data(), key->second.size()};
    }
  }
  const int number = ++num_calls_;
  if (request->has_chat() && !has_template) {
    return {grpc::StatusCode::FAILED_PRECONDITION, "no template"};
  }
  if (refuse_every > 0 && number % refuse_every == 0) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "queue\nfull"};
  }
  const int running = ++running_;
  int most = max_running_;
  while (running > most && !max_running_.compare_exchange_weak(most, running)) {
  }
  grpc::Status status = Stream(context, *request, writer);
  --running_;
  return status;
}

grpc::Status FakeInference::Stream(
    grpc::ServerContext* context, const v1::GenerateRequest& request,
    grpc::ServerWriter<v1::GenerateResponse>* writer) {
  const int num_tokens = static_cast<int>(request.stopping().max_tokens());
  for (int i = 0; i < num_tokens; ++i) {
    absl::SleepFor(absl::Milliseconds(pause_ms));
    if (context->IsCancelled()) {
      ++num_cancelled_;
      return grpc::Status::CANCELLED;
    }
    v1::GenerateResponse response;
    response.add_token_ids(i);
    response.set_text(absl::StrCat("t", i, " "));
    if (i + 1 == num_tokens) {
      const uint64_t n = request.tokens().ids_size() + num_tokens - 1;
      const bool full = request.strategy().spec() == "full";
      v1::Usage* usage = response.mutable_done()->mutable_usage();
      usage->set_prompt_tokens(request.tokens().ids_size());
      usage->set_generated_tokens(num_tokens + extra_counted_tokens);
      usage->set_kv_bytes(n * kBytesPerToken / (full ? 1 : 2));
      usage->set_kv_bytes_full(n * kBytesPerToken);
      usage->set_strategy(request.strategy().spec());
    }
    writer->Write(response);
  }
  return grpc::Status::OK;
}

grpc::Status FakeInference::GetModel(grpc::ServerContext*,
                                     const v1::GetModelRequest*,
                                     v1::GetModelResponse* response) {
  response->set_name("fake");
  response->set_vocab_size(kVocabulary);
  response->set_max_model_len(kContext);
  return grpc::Status::OK;
}

grpc::Status FakeInference::GetLoad(grpc::ServerContext*,
                                    const v1::GetLoadRequest*,
                                    v1::GetLoadResponse* response) {
  response->set_running(running_);
  response->set_kv_used_bytes(running_ * kBytesPerToken + leaked_bytes);
  return grpc::Status::OK;
}

}  // namespace strata
