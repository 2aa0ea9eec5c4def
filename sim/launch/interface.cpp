#include "sim/launch/interface.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

struct InterfaceAddress {
  std::string name;
  std::string address;
  int family;
};

std::string numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = {};
  return getnameinfo(address, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

// The addresses of the interfaces that are up, those of IPv4 first.
std::vector<InterfaceAddress> addresses_here() {
  std::vector<InterfaceAddress> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family || (one->ifa_flags & IFF_UP) == 0) continue;
      const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      found.push_back({one->ifa_name, numeric(one->ifa_addr, length), family});
    }
  return found;
}

}  // namespace

std::string interface_names() {
  std::vector<std::string> names;
  for (const InterfaceAddress& one : addresses_here())
    if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
  return visible_names(names);
}

std::string interface_address(const std::string& name_or_address) {
  for (const InterfaceAddress& one : addresses_here())
    if (one.name == name_or_address || one.address == name_or_address) return one.address;
#if defined(__linux__)
  // All of 127.0.0.0/8 is this host's, though the interface lists only the first.
  in_addr own = {};
  if (inet_pton(AF_INET, name_or_address.c_str(), &own) == 1 && ntohl(own.s_addr) >> 24 == 127) return name_or_address;
#endif
  const std::string names = interface_names();
  throw UsageError(fmt::format(
      "--interface {} is neither an interface of this host that has an address nor one of its addresses; it has {}",
      as_typed(name_or_address), names.empty() ? "none" : names));
}

bool is_loopback(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (error != 0)
    throw UsageError(fmt::format(
        "no address is known of {}, where the ranks are to meet: {}; give a host that all of them know, or its address",
        in_quotes(host), error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(one->ai_addr);
      if ((ntohl(address->sin_addr.s_addr) >> 24) != 127) return false;
    } else if (one->ai_family == AF_INET6) {
      if (!IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(one->ai_addr)->sin6_addr)) return false;
    }
  }
  return true;
}

}  // namespace muonwalk::sim
