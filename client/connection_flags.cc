#include "client/connection_flags.h"

#include <string>

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, address, "127.0.0.1:8001",
          "HOST:PORT of the server's gRPC port");
ABSL_FLAG(std::string, api_key_file, "",
          "file whose first line that is no comment is sent as the API key");
ABSL_FLAG(std::string, tls_ca, "",
          "PEM file of the authority that signed the server's certificate; "
          "set: the connection uses TLS");
ABSL_FLAG(std::string, tls_cert, "",
          "PEM file of the certificate to show, where the server wants one");
ABSL_FLAG(std::string, tls_key, "", "PEM file of its private key");

namespace strata {

ConnectionOptions ConnectionOptionsFromFlags() {
  return {.address = absl::GetFlag(FLAGS_address),
          .api_key_file = absl::GetFlag(FLAGS_api_key_file),
          .tls_ca = absl::GetFlag(FLAGS_tls_ca),
          .tls_cert = absl::GetFlag(FLAGS_tls_cert),
          .tls_key = absl::GetFlag(FLAGS_tls_key)};
}

}  // namespace strata
