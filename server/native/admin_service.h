#ifndef SERVER_NATIVE_ADMIN_SERVICE_H_
#define SERVER_NATIVE_ADMIN_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/engine.h"
#include "proto/strata.grpc.pb.h"
#include "server/serving_state.h"

namespace strata {

// What is logged of a call of Admin.
struct AdminLog {
  std::string_view method;
  std::string peer;    // as gRPC names it
  std::string change;  // the message, in one line of at most 512 bytes
  absl::Status status;
};

// Called on gRPC's threads and the engine's; must not block long.
using AdminLogger = std::function<void(const AdminLog&)>;

// The face strata.v1.Admin: the strategies of requests that live and of those
// to come, the names of strategies, and what is done under memory pressure.
//
// Thread-safe: changes of the registry and the policy are made one after
// another.
class AdminService final : public v1::Admin::CallbackService {
 public:
  enum class Callers { kAll, kOnThisHost };

  // `state` outlives this.  Others than `callers` get PERMISSION_DENIED.
  // `policy` is what the engine begins with.  `logger` may be null.
  AdminService(const ServingState* state, Callers callers,
               const PressurePolicy& policy, AdminLogger logger);

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
  grpc::ServerUnaryReactor* SwitchRequests(
      const ServedModel& model, grpc::CallbackServerContext* context,
      const v1::SwitchStrategyRequest& message,
      v1::SwitchStrategyResponse* response) const;
  // All or nothing.
  absl::Status ChangePolicy(const v1::SetPolicyRequest& message,
                            v1::SetPolicyResponse* response);

  void Log(const grpc::CallbackServerContext& context, std::string_view method,
           const google::protobuf::Message& message,
           const absl::Status& status) const;
  // Logs a call and ends it.
  grpc::ServerUnaryReactor* End(grpc::CallbackServerContext* context,
                                std::string_view method,
                                const google::protobuf::Message& message,
                                const absl::Status& status) const;
  absl::Status CheckCaller(const grpc::CallbackServerContext& context) const;

  const ServingState* const state_;
  const Callers callers_;
  const AdminLogger logger_;  // may be null
  absl::Mutex mu_;  // held by the one who changes the registry or the policy
  PressurePolicy policy_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata

#endif  // SERVER_NATIVE_ADMIN_SERVICE_H_
