#ifndef SERVER_TRANSPORT_TLS_FILES_H_
#define SERVER_TRANSPORT_TLS_FILES_H_

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace strata {

// What a TLS server shows and demands, as PEM.
struct TlsFiles {
  std::string cert;  // its own certificate, then those that issued it
  std::string key;   // its private key
  std::optional<std::string> client_ca;  // issuers of those that clients must
                                         // show; absent: none wanted
};

// Whether OpenSSL takes them: certificates and a key without a password, which
// belong together and are strong enough.  INVALID_ARGUMENT begins with the flag
// of the file that is wrong (--tls_key: ...).
absl::Status CheckTlsFiles(const TlsFiles& files);

}  // namespace strata

#endif  // SERVER_TRANSPORT_TLS_FILES_H_
