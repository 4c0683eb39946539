#ifndef TESTS_CLIENT_FAKE_INFERENCE_H_
#define TESTS_CLIENT_FAKE_INFERENCE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/connection.h"
#include "proto/strata.grpc.pb.h"

namespace strata {

// A server in this process on a loopback port, to test clients with: Generate
// sends "t0 ", "t1 ", ... one token a response, as many as max_tokens says.
//
// Set the fields before the first call.
class FakeInference : public v1::Inference::Service {
 public:
  FakeInference();
  ~FakeInference() override;

  ConnectionOptions Options() const { return {.address = address_}; }

  bool has_template = true;      // else Chat is FAILED_PRECONDITION
  int pause_ms = 0;              // before each token
  int refuse_every = 0;          // n > 0: each n-th call is RESOURCE_EXHAUSTED
  int extra_counted_tokens = 0;  // usage counts more than were sent
  uint64_t leaked_bytes = 0;     // GetLoad's kv_used_bytes when idle

  // Those seen so far.
  std::vector<v1::GenerateRequest> requests() const;
  std::string last_authorization() const;
  int max_running() const { return max_running_; }
  int num_cancelled() const { return num_cancelled_; }

  static constexpr uint32_t kVocabulary = 97;
  static constexpr uint32_t kContext = 64;
  static constexpr uint64_t kBytesPerToken = 1000;  // under full; else a half

 private:
  grpc::Status Generate(
      grpc::ServerContext* context, const v1::GenerateRequest* request,
      grpc::ServerWriter<v1::GenerateResponse>* writer) override;
  grpc::Status GetModel(grpc::ServerContext* context,
                        const v1::GetModelRequest* request,
                        v1::GetModelResponse* response) override;
  grpc::Status GetLoad(grpc::ServerContext* context,
                       const v1::GetLoadRequest* request,
                       v1::GetLoadResponse* response) override;
  grpc::Status Stream(grpc::ServerContext* context,
                      const v1::GenerateRequest& request,
                      grpc::ServerWriter<v1::GenerateResponse>* writer);

  std::string address_;
  std::atomic<int> running_ = 0;
  std::atomic<int> max_running_ = 0;
  std::atomic<int> num_calls_ = 0;
  std::atomic<int> num_cancelled_ = 0;
  mutable absl::Mutex mu_;
  std::vector<v1::GenerateRequest> requests_ ABSL_GUARDED_BY(mu_);
  std::string last_authorization_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<grpc::Server> server_;  // last: its threads use the rest
};

}  // namespace strata

#endif  // TESTS_CLIENT_FAKE_INFERENCE_H_
