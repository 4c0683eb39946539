#ifndef SERVER_ACCESS_PORT_SECURITY_H_
#define SERVER_ACCESS_PORT_SECURITY_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "server/access/access_control.h"
#include "server/process/logging.h"
#include "server/process/options.h"
#include "server/ticker.h"
#include "server/transport/port_credentials.h"
#include "server/transport/watched_files.h"

namespace strata {

// Keys and certificates of the ports, from the files that the flags name.  They
// are read anew when they change; what is wrong with the new ones is logged,
// and the old ones stay.
//
// Thread-safe.
class PortSecurity {
 public:
  // `on_refusal` is called for each call that is refused, on gRPC's threads.
  // `logger` outlives this.  Errors are one line that begins with the path or
  // the flag.
  static absl::StatusOr<std::unique_ptr<PortSecurity>> Open(
      const ServerOptions& options, Logger* logger,
      std::function<void()> on_refusal);

  // Of the gRPC port.  They outlive its server, and this outlives them.
  std::shared_ptr<grpc::ServerCredentials> credentials() const {
    return credentials_;
  }
  // The keys.
  const AccessControl& access() const { return access_; }

 private:
  PortSecurity(const ServerOptions& options, std::function<void()> on_refusal);
  absl::Status OpenKeys(const ServerOptions& options, Logger* logger);
  absl::Status OpenTls(const ServerOptions& options, Logger* logger);
  absl::Status CheckCall(const PortCredentials::Metadata& metadata) const;

  AccessControl access_;
  const std::function<void()> on_refusal_;
  std::shared_ptr<PortCredentials> credentials_;
  std::unique_ptr<WatchedFiles> keys_;  // null: none
  std::unique_ptr<WatchedFiles> tls_;   // null: none
  std::unique_ptr<Ticker> ticker_;      // last: uses the others
};

}  // namespace strata

#endif  // SERVER_ACCESS_PORT_SECURITY_H_
