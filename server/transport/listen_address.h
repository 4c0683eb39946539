#ifndef SERVER_TRANSPORT_LISTEN_ADDRESS_H_
#define SERVER_TRANSPORT_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"

namespace strata {

// HOST:PORT, an IPv6 address in brackets.
std::string JoinHostPort(const std::string& host, int port);

// Whether one could listen there now, with the system's reason if not.  The
// libraries that do listen give no reason.  Port 0 is free where the host is
// ours.
absl::Status CheckCanListen(const std::string& host, int port);

// Connects to one who listens there, and hangs up.
void Knock(const std::string& host, int port);

}  // namespace strata

#endif  // SERVER_TRANSPORT_LISTEN_ADDRESS_H_
