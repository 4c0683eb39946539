#ifndef SERVER_UNARY_H_
#define SERVER_UNARY_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "server/grpc_status.h"

namespace strata {

// Ends a unary call now.
inline grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                        const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToFinalStatus(status, context));
  return reactor;
}

}  // namespace strata

#endif  // SERVER_UNARY_H_
