#include "server/transport/port_credentials.h"

#include <grpc/grpc.h>
#include <grpc/slice.h>

#include "base/check.h"
#include "server/grpc_status.h"

namespace strata {
namespace {

std::string_view View(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)),
          GRPC_SLICE_LENGTH(slice)};
}

}  // namespace

void PortCredentials::SetTls(TlsFiles files) {
  absl::MutexLock lock(&mu_);
  tls_ = std::make_unique<const TlsFiles>(std::move(files));
  tls_is_fetched_ = false;
}

void PortCredentials::SetAuthMetadataProcessor(
    const std::shared_ptr<grpc::AuthMetadataProcessor>&) {
  STRATA_CHECK(false);  // `check_` is the one
}

grpc_server_credentials* PortCredentials::Create() {
  grpc_ssl_client_certificate_request_type wanted =
      GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
  {
    absl::MutexLock lock(&mu_);
    if (tls_ == nullptr) return grpc_insecure_server_credentials_create();
    if (tls_->client_ca.has_value()) {
      wanted = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    }
  }
  return grpc_ssl_server_credentials_create_with_options(
      grpc_ssl_server_credentials_create_options_using_config_fetcher(
          wanted, FetchTls, this));
}

int PortCredentials::AddPortToServer(const std::string& address,
                                     grpc_server* server) {
  grpc_server_credentials* credentials = Create();
  if (check_) {
    grpc_server_credentials_set_auth_metadata_processor(
        credentials, {.process = CheckCall, .destroy = nullptr, .state = this});
  }
  const int port =
      grpc_server_add_http2_port(server, address.c_str(), credentials);
  grpc_server_credentials_release(credentials);
  return port;
}

grpc_ssl_certificate_config_reload_status PortCredentials::FetchTls(
    void* self, grpc_ssl_server_certificate_config** config) {
  auto* credentials = static_cast<PortCredentials*>(self);
  absl::MutexLock lock(&credentials->mu_);
  if (credentials->tls_is_fetched_) {
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  }
  const TlsFiles& files = *credentials->tls_;
  const grpc_ssl_pem_key_cert_pair pair = {files.key.c_str(),
                                           files.cert.c_str()};
  // gRPC wants issuers also where no client is asked for a certificate, and
  // then does not use them.
  const std::string issuers = files.client_ca.value_or(files.cert);
  *config =
      grpc_ssl_server_certificate_config_create(issuers.c_str(), &pair, 1);
  credentials->tls_is_fetched_ = true;
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

void PortCredentials::CheckCall(void* self, grpc_auth_context*,
                                const grpc_metadata* entries, size_t count,
                                grpc_process_auth_metadata_done_cb done,
                                void* user_data) {
  Metadata metadata;
  metadata.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    metadata.emplace_back(View(entries[i].key), View(entries[i].value));
  }
  const grpc::Status status =
      ToGrpcStatus(static_cast<PortCredentials*>(self)->check_(metadata));
  done(user_data, /*consumed_md=*/nullptr, 0, /*response_md=*/nullptr, 0,
       static_cast<grpc_status_code>(status.error_code()),
       status.error_message().c_str());
}

}  // namespace strata
