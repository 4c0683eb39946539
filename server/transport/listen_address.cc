#include "server/transport/listen_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// Null with `error` for getaddrinfo's gai_strerror.
Addresses Resolve(const std::string& host, int port, int* error) {
  std::string bare = host;
  if (bare.size() > 2 && bare.front() == '[' && bare.back() == ']') {
    bare = bare.substr(1, bare.size() - 2);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  *error =
      getaddrinfo(bare.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  return Addresses(found, freeaddrinfo);
}

absl::Status CannotListen(const std::string& host, int port,
                          const char* reason) {
  return absl::UnavailableError(absl::StrCat(
      "cannot listen on ", JoinHostPort(host, port), ": ", reason));
}

}  // namespace

std::string JoinHostPort(const std::string& host, int port) {
  const bool is_ipv6 = host.find(':') != host.npos && host[0] != '[';
  return is_ipv6 ? absl::StrCat("[", host, "]:", port)
                 : absl::StrCat(host, ":", port);
}

absl::Status CheckCanListen(const std::string& host, int port) {
  int resolve_error = 0;
  const Addresses addresses = Resolve(host, port, &resolve_error);
  if (resolve_error != 0) {
    return CannotListen(host, port, gai_strerror(resolve_error));
  }
  int error = 0;
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    const int fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    if (fd < 0) {
      error = errno;
      continue;
    }
    // As servers do: a port whose connections are in TIME_WAIT is free.
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    const bool can_listen =
        bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 1) == 0;
    error = can_listen ? 0 : errno;
    close(fd);
    if (!can_listen) break;
  }
  if (error != 0) return CannotListen(host, port, std::strerror(error));
  return absl::OkStatus();
}

void Knock(const std::string& host, int port) {
  int resolve_error = 0;
  const Addresses addresses = Resolve(host, port, &resolve_error);
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    const int fd =
        socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK, a->ai_protocol);
    if (fd < 0) continue;
    connect(fd, a->ai_addr, a->ai_addrlen);
    close(fd);
  }
}

}  // namespace strata
