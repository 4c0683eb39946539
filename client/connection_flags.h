#ifndef CLIENT_CONNECTION_FLAGS_H_
#define CLIENT_CONNECTION_FLAGS_H_

#include "client/connection.h"

namespace strata {

// --address, --api_key_file, --tls_ca, --tls_cert, --tls_key: defined here for
// every command that talks to a server.  REQUIRES: flags are parsed.
ConnectionOptions ConnectionOptionsFromFlags();

}  // namespace strata

#endif  // CLIENT_CONNECTION_FLAGS_H_
