#ifndef SERVER_GRPC_SERVER_H_
#define SERVER_GRPC_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace strata {

struct GrpcServerOptions {
  std::string host;
  int port = 0;                      // 0: a free one
  int max_message_bytes = 0;         // received and sent
  int max_streams = 0;               // calls at once on one connection
  absl::Duration keepalive_time;     // silence before the peer is asked
  absl::Duration keepalive_timeout;  // for its answer
  bool reflection = false;
  std::shared_ptr<grpc::ServerCredentials> credentials;
};

// The gRPC port, with limits that are said rather than left to gRPC.
class GrpcServer {
 public:
  // Listens and serves at once.  `services` outlive this.  UNAVAILABLE says why
  // it cannot.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      const GrpcServerOptions& options,
      const std::vector<grpc::Service*>& services);

  int port() const { return port_; }

  // Takes no more calls; those that run after `deadline` are cancelled. Returns
  // when all are over.
  void Shutdown(absl::Time deadline);

 private:
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace strata

#endif  // SERVER_GRPC_SERVER_H_
