#ifndef SERVER_HEALTH_HEALTH_SERVICE_H_
#define SERVER_HEALTH_HEALTH_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/health.grpc.pb.h"
#include "server/serving_state.h"
#include "server/ticker.h"

namespace strata {

class HealthWatch;

// grpc.health.v1.Health.  `liveness` asks ServingState::live, every other name
// ServingState::ready.  gRPC's own service would say SERVING from the start.
//
// Check answers from memory at once; a thread looks for changes every 100 ms
// and tells them to the watches.  Of these 1,024 are open at once: more are
// told the present status and RESOURCE_EXHAUSTED.  Thread-safe.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  // `state` outlives this.
  explicit HealthService(const ServingState* state);
  ~HealthService() override;

  // Ends all watches, also those to come, with UNAVAILABLE.  Before
  // grpc::Server::Shutdown, which waits for them.
  void EndWatches();

  grpc::ServerUnaryReactor* Check(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* message,
      grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* message) override;

 private:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  Status StatusOf(std::string_view service) const;
  void UpdateWatches();
  // Forgets those that are gone.
  std::vector<std::shared_ptr<HealthWatch>> LivingWatches();

  const ServingState* const state_;
  absl::Mutex mu_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::weak_ptr<HealthWatch>> watches_ ABSL_GUARDED_BY(mu_);
  Ticker ticker_;  // last: uses the others
};

}  // namespace strata

#endif  // SERVER_HEALTH_HEALTH_SERVICE_H_
