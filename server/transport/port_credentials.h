#ifndef SERVER_TRANSPORT_PORT_CREDENTIALS_H_
#define SERVER_TRANSPORT_PORT_CREDENTIALS_H_

#include <grpc/grpc_security.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/transport/tls_files.h"

namespace strata {

// What a gRPC port demands of its callers: TLS or none, and what a function
// says to each call.  Of all services on the port, and before any of them sees
// the call.
//
// gRPC's own credentials cannot: those without TLS take no check of calls, and
// those with TLS that read files stop serving while certificate and key do not
// fit.
//
// Thread-safe once the server is built; outlives it.
class PortCredentials final : public grpc::ServerCredentials {
 public:
  // Name and value, as sent; names of pseudo-headers begin with a colon.
  using Metadata = std::vector<std::pair<std::string_view, std::string_view>>;
  // Called on gRPC's threads; must not block.
  using Check = std::function<absl::Status(const Metadata&)>;

  // `check` null: every call is welcome.
  explicit PortCredentials(Check check) : check_(std::move(check)) {}

  // For connections from now on; those that are open stay.  TLS, if it is
  // called before the server is built.  REQUIRES: CheckTlsFiles is OK;
  // client_ca is absent always or never.
  void SetTls(TlsFiles files);

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override;
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override;
  grpc_server_credentials* Create();

  // Called by gRPC.
  static grpc_ssl_certificate_config_reload_status FetchTls(
      void* self, grpc_ssl_server_certificate_config** config);
  static void CheckCall(void* self, grpc_auth_context*,
                        const grpc_metadata* entries, size_t count,
                        grpc_process_auth_metadata_done_cb done,
                        void* user_data);

  const Check check_;
  absl::Mutex mu_;
  std::unique_ptr<const TlsFiles> tls_ ABSL_GUARDED_BY(mu_);  // null: plain
  bool tls_is_fetched_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace strata

#endif  // SERVER_TRANSPORT_PORT_CREDENTIALS_H_
