#ifndef SERVER_PROCESS_LIBRARY_LOG_H_
#define SERVER_PROCESS_LIBRARY_LOG_H_

#include "server/process/logging.h"

namespace strata {

// While it lives, what gRPC and protobuf say are lines of `logger`, events
// `grpc` and `protobuf`; else they would stand between the lines in forms of
// their own.  After it they say nothing.  One at a time, and made before other
// threads use them.
class LibraryLog {
 public:
  // `logger` outlives this.
  explicit LibraryLog(Logger* logger);
  ~LibraryLog();
  LibraryLog(const LibraryLog&) = delete;
  LibraryLog& operator=(const LibraryLog&) = delete;
};

}  // namespace strata

#endif  // SERVER_PROCESS_LIBRARY_LOG_H_
