#ifndef SERVER_GRPC_STATUS_H_
#define SERVER_GRPC_STATUS_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"

namespace strata {

// The one map of errors for every face: the code of the same name, the message
// cut to 512 bytes at the end of a character, what is not UTF-8 in it escaped.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The same, as the end of `context`'s call: RESOURCE_EXHAUSTED also tells the
// client when to try again, in trailing metadata `retry-after-ms`, and gRPC's
// own retries, where the client has them on, in `grpc-retry-pushback-ms`.
// REQUIRES: the call was not finished.
grpc::Status ToFinalStatus(const absl::Status& status,
                           grpc::ServerContextBase* context);

}  // namespace strata

#endif  // SERVER_GRPC_STATUS_H_
