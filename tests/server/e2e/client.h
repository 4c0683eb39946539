#ifndef TESTS_SERVER_E2E_CLIENT_H_
#define TESTS_SERVER_E2E_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/strata.grpc.pb.h"
#include "tests/monitoring/scraped_metrics.h"
#include "tests/server/e2e/server_process.h"

namespace strata {

// A greedy request of token ids that ends at max_tokens.
v1::GenerateRequest GreedyRequest(const std::vector<int>& prompt,
                                  const std::string& strategy, int max_tokens);

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
                      grpc::InsecureChannelCredentials());

  // Cancels the call once `cancel_after` tokens have come; 0: never.
  Generated Generate(const v1::GenerateRequest& request, int cancel_after = 0);
  Generated Generate(const v1::GenerateRequest& request,
                     grpc::ClientContext* context, int cancel_after = 0);

  v1::GetLoadResponse GetLoad();
  v1::GetModelResponse GetModel();
  grpc::Status Switch(const std::string& request_id, const std::string& spec,
                      bool recompute, v1::SwitchStrategyResponse* response);
  // Ends every live request with this label; their number.
  uint32_t Abort(const std::string& request_id);
  // Waits until `running` and `waiting` requests are there; false after 20 s.
  bool WaitForLoad(uint32_t running, uint32_t waiting);

  v1::Inference::Stub& inference() { return *inference_; }
  v1::Admin::Stub& admin() { return *admin_; }
  const std::shared_ptr<grpc::Channel>& channel() { return channel_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Inference::Stub> inference_;
  std::unique_ptr<v1::Admin::Stub> admin_;
};

ScrapedMetrics Scrape(const ServerProcess& server);

}  // namespace strata

#endif  // TESTS_SERVER_E2E_CLIENT_H_
