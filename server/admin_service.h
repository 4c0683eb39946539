#ifndef SERVER_ADMIN_SERVICE_H_
#define SERVER_ADMIN_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/strata.grpc.pb.h"
#include "server/serving_state.h"

namespace strata {

// The face strata.v1.Admin: the default strategy and the registered ones.
//
// Thread-safe: changes are made one after another.
class AdminService final : public v1::Admin::CallbackService {
 public:
  // `state` outlives this.
  explicit AdminService(const ServingState* state);

  grpc::ServerUnaryReactor* SwitchStrategy(
      grpc::CallbackServerContext* context,
      const v1::SwitchStrategyRequest* message,
      v1::SwitchStrategyResponse* response) override;
  grpc::ServerUnaryReactor* SetPolicy(grpc::CallbackServerContext* context,
                                      const v1::SetPolicyRequest* message,
                                      v1::SetPolicyResponse* response) override;

 private:
  absl::Status SwitchDefault(const v1::SwitchStrategyRequest& message,
                             v1::SwitchStrategyResponse* response);
  absl::Status Register(const v1::SetPolicyRequest& message,
                        v1::SetPolicyResponse* response);

  const ServingState* const state_;
  absl::Mutex mu_;  // held by the one who changes the registry
};

}  // namespace strata

#endif  // SERVER_ADMIN_SERVICE_H_
