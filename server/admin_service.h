#ifndef SERVER_ADMIN_SERVICE_H_
#define SERVER_ADMIN_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/strata.grpc.pb.h"
#include "server/serving_state.h"

namespace strata {

// The face strata.v1.Admin: the strategies of requests that live and of those
// to come, the names of strategies, and what is done under memory pressure.
//
// Thread-safe: changes of the registry and the policy are made one after
// another.
class AdminService final : public v1::Admin::CallbackService {
 public:
  enum class Callers { kAll, kOnThisHost };

  // `state` outlives this.  Others than `callers` get PERMISSION_DENIED.
  AdminService(const ServingState* state, Callers callers);

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
  // The engine thread ends the call.
  static grpc::ServerUnaryReactor* SwitchRequests(
      const ServedModel& model, grpc::CallbackServerContext* context,
      const v1::SwitchStrategyRequest& message,
      v1::SwitchStrategyResponse* response);
  // All or nothing.
  absl::Status ChangePolicy(const v1::SetPolicyRequest& message,
                            v1::SetPolicyResponse* response);

  absl::Status CheckCaller(const grpc::CallbackServerContext& context) const;

  const ServingState* const state_;
  const Callers callers_;
  absl::Mutex mu_;  // held by the one who changes the registry or the policy
};

}  // namespace strata

#endif  // SERVER_ADMIN_SERVICE_H_
