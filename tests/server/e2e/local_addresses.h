#ifndef TESTS_SERVER_E2E_LOCAL_ADDRESSES_H_
#define TESTS_SERVER_E2E_LOCAL_ADDRESSES_H_

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <string>
#include <vector>

namespace strata {

// This host's IPv4 addresses that peers would see as another host's.
inline std::vector<std::string> LocalAddressesButLoopback() {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET ||
        (i->ifa_flags & IFF_LOOPBACK) != 0 || (i->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    addresses.push_back(
        inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text)));
  }
  freeifaddrs(all);
  return addresses;
}

}  // namespace strata

#endif  // TESTS_SERVER_E2E_LOCAL_ADDRESSES_H_
