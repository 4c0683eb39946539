#ifndef CLIENT_CONNECTION_H_
#define CLIENT_CONNECTION_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/strata.grpc.pb.h"

namespace strata {

struct ConnectionOptions {
  std::string address = "127.0.0.1:8001";  // HOST:PORT
  std::string api_key_file = "";           // its first key is sent; empty: none
  std::string tls_ca = "";  // PEM file of the server's authority; empty: no TLS
  // PEM files of what a server with --tls_client_ca wants to see; empty: none.
  std::string tls_cert = "";
  std::string tls_key = "";
};

// A channel to one server and what every call to it carries.
//
// Thread-safe after construction.
class Connection {
 public:
  // Does not wait for the server.  NOT_FOUND, INVALID_ARGUMENT: a file that
  // cannot be read, a key file without a key, a TLS file without the others.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(
      const ConnectionOptions& options);

  v1::Inference::Stub* stub() const { return stub_.get(); }
  v1::Admin::Stub* admin() const { return admin_.get(); }

  // Adds the key to a call that has not started.
  void Authorize(grpc::ClientContext* context) const;

  // One line for the person at the terminal: code, message and, where nothing
  // answers, what to do.  REQUIRES: !status.ok().
  std::string ErrorLine(const grpc::Status& status) const;

 private:
  Connection(const ConnectionOptions& options, std::string key,
             std::shared_ptr<grpc::ChannelCredentials> credentials);

  const std::string address_;
  const bool uses_tls_;
  const std::string key_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Inference::Stub> stub_;
  const std::unique_ptr<v1::Admin::Stub> admin_;
};

// INVALID_ARGUMENT and so on, as grpc's documentation spells them.
std::string CodeName(grpc::StatusCode code);

}  // namespace strata

#endif  // CLIENT_CONNECTION_H_
