#ifndef TESTS_SERVER_NATIVE_TINY_SERVER_H_
#define TESTS_SERVER_NATIVE_TINY_SERVER_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "proto/strata.grpc.pb.h"
#include "server/admission.h"
#include "server/native/admin_service.h"
#include "server/native/inference_service.h"
#include "server/serving_state.h"
#include "tests/server/served_tiny_model.h"
#include "tests/testing/loopback_server.h"

namespace strata {

// What a client was given at one index.
struct Generated {
  std::vector<int32_t> tokens;
  std::vector<v1::Logprobs> logprobs;
  std::optional<v1::Done> done;
};

// A server of a tiny model on a port of its own, and a client of it.
class TinyServer {
 public:
  explicit TinyServer(const TinyEngine::Options& options = {},
                      const AdmissionLimits& limits = {},
                      absl::Duration stall_limit = absl::Seconds(60))
      : served(options),
        admission_(
            &state, [this](const RequestLog& log) { Log(log); }, limits),
        inference_(&admission_, stall_limit) {
    server_ = StartOnLoopback({&inference_, &admin_}, &address);
    channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    inference = v1::Inference::NewStub(channel);
    admin = v1::Admin::NewStub(channel);
    state.Publish(&served.model);
  }
  ~TinyServer() { server_->Shutdown(); }

  // Greedy, without end tokens.
  static v1::GenerateRequest Greedy(const std::vector<int32_t>& prompt,
                                    const std::string& strategy,
                                    int max_tokens) {
    v1::GenerateRequest request;
    request.mutable_tokens()->mutable_ids()->Add(prompt.begin(), prompt.end());
    request.mutable_strategy()->set_spec(strategy);
    request.mutable_sampling()->set_temperature(0);
    request.mutable_stopping()->set_max_tokens(max_tokens);
    request.mutable_stopping()->set_ignore_eos(true);
    return request;
  }

  grpc::Status Generate(const v1::GenerateRequest& request,
                        std::vector<Generated>* generated,
                        grpc::ClientContext* context) {
    generated->assign(std::max<int>(1, request.num_sequences()), {});
    auto reader = inference->Generate(context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
      Generated& of = generated->at(response.index());
      EXPECT_FALSE(of.done.has_value());
      of.tokens.insert(of.tokens.end(), response.token_ids().begin(),
                       response.token_ids().end());
      of.logprobs.insert(of.logprobs.end(), response.logprobs().begin(),
                         response.logprobs().end());
      if (response.has_done()) of.done = response.done();
    }
    return reader->Finish();
  }
  grpc::Status Generate(const v1::GenerateRequest& request,
                        std::vector<Generated>* generated) {
    grpc::ClientContext context;
    return Generate(request, generated, &context);
  }
  grpc::Status Generate(const v1::GenerateRequest& request) {
    std::vector<Generated> ignored;
    return Generate(request, &ignored);
  }

  v1::GetLoadResponse Load() {
    grpc::ClientContext context;
    v1::GetLoadResponse load;
    EXPECT_TRUE(inference->GetLoad(&context, {}, &load).ok());
    return load;
  }
  // Returns when nothing runs and no page is held.
  void WaitUntilIdle() {
    for (;;) {
      const v1::GetLoadResponse load = Load();
      if (load.running() + load.waiting() == 0 && load.kv_used_bytes() == 0 &&
          load.kv_reserved_bytes() == 0) {
        return;
      }
      absl::SleepFor(absl::Milliseconds(2));
    }
  }

  // False if calls live after `limit`.
  bool WaitForCalls(absl::Duration limit) {
    return admission_.WaitForCalls(limit);
  }

  // The logs of `count` calls, once they are there.
  std::vector<RequestLog> Logs(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return logs_.size() >= count;
    };
    mu_.Await(absl::Condition(&there));
    return logs_;
  }

  // Of calls of Admin that have ended.
  std::vector<AdminLog> AdminLogs() {
    absl::MutexLock lock(&mu_);
    return admin_logs_;
  }

  ServedTinyModel served;
  ServingState state;
  std::string address;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Inference::Stub> inference;
  std::unique_ptr<v1::Admin::Stub> admin;

 private:
  void Log(const RequestLog& log) {
    absl::MutexLock lock(&mu_);
    logs_.push_back(log);
  }

  void LogAdmin(const AdminLog& log) {
    absl::MutexLock lock(&mu_);
    admin_logs_.push_back(log);
  }

  absl::Mutex mu_;
  std::vector<AdminLog> admin_logs_ ABSL_GUARDED_BY(mu_);
  std::vector<RequestLog> logs_ ABSL_GUARDED_BY(mu_);
  Admission admission_;
  InferenceService inference_;
  AdminService admin_{
      &state, AdminService::Callers::kAll, {}, [this](const AdminLog& log) {
        LogAdmin(log);
      }};
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace strata

#endif  // TESTS_SERVER_NATIVE_TINY_SERVER_H_
