#ifndef SERVER_PROCESS_GRPC_LOG_H_
#define SERVER_PROCESS_GRPC_LOG_H_

#include "server/process/logging.h"

namespace strata {

// While it lives, what gRPC says is a line of `logger`, event `grpc`; else it
// would stand between the lines in a form of its own.  One at a time.
class GrpcLog {
 public:
  // `logger` outlives this.
  explicit GrpcLog(Logger* logger);
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

}  // namespace strata

#endif  // SERVER_PROCESS_GRPC_LOG_H_
