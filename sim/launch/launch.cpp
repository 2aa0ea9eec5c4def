#include "sim/launch/launch.hpp"

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
  std::string name, address;
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
      found.push_back({one->ifa_name, numeric(one->ifa_addr, length)});
    }
  return found;
}

// The interfaces of this host that are up and have an address, for a sentence: "lo, eth0".
std::string interface_names() {
  std::vector<std::string> names;
  for (const InterfaceAddress& one : addresses_here())
    if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
  return visible_names(names);
}

// The numeric address of what `--interface` says: the name of an interface of this host, whose first address it is
// (IPv4 before IPv6), or one of this host's addresses itself.
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

// True when all addresses of a host are on the loopback. Refuses where it has none.
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

// Where to meet: "HOST:PORT", an IPv6 address in brackets.
void choose_meeting(const std::string& text, const std::string& from, Launch& launch) {
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  std::string host = text.substr(0, colon);
  const std::optional<int> port = whole_number(text.substr(std::min(colon + 1, text.size())), 1, kMostPort);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of(":[]") != std::string::npos)
    host.clear();
  if (host.empty() || !port)
    throw UsageError(
        fmt::format("{} {} does not say where to meet; it takes HOST:PORT with a port from 1 to {}, for example "
                    "10.0.0.1:29500 or [fd00::1]:29500",
                    from, as_typed(text), kMostPort));
  launch.rendezvous_host = host;
  launch.rendezvous_port = *port;
}

bool is_numeric(const std::string& host) {
  in6_addr ignored;
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1 || inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

std::string who_started(const Launch& launch) {
  return launch.by_hand ? fmt::format("the {} ranks of --world-size", launch.world_size)
                        : fmt::format("the {} processes of {}", launch.world_size, launch.launcher);
}

void choose_address(const LaunchOptions& options, Launch& launch) {
  const bool several_hosts = launch.local_size < launch.world_size;
  if (!options.interface.empty()) {
    launch.address = interface_address(options.interface);
    launch.one_host = launch.local_known ? !several_hosts : is_loopback(launch.address);
    if (launch.rank == 0 && is_numeric(launch.rendezvous_host) && launch.rendezvous_host != launch.address)
      throw UsageError(
          fmt::format("rank 0 can't listen at {}, where the ranks are to meet, because --interface {} has the address "
                      "{}; give one of the two for both",
                      launch.rendezvous_host, as_typed(options.interface), launch.address));
    if (launch.rendezvous_host.empty() && launch.one_host) launch.rendezvous_host = launch.address;
    return;
  }
  // Without --interface nothing but the loopback is opened.
  if (several_hosts)
    throw UsageError(
        fmt::format("{} are on several hosts, but without --interface nothing but the loopback of each is opened; add "
                    "--interface and the network that joins them (this host has {})",
                    who_started(launch), interface_names()));
  if (!launch.local_known && !launch.rendezvous_host.empty() && !is_loopback(launch.rendezvous_host))
    throw UsageError(
        fmt::format("the ranks are to meet at {}, but without --interface nothing but the loopback of this host is "
                    "opened; add --interface and the network that joins them (this host has {})",
                    visible_name(launch.rendezvous_host), interface_names()));
  launch.address = launch.rendezvous_host == "::1" ? "::1" : "127.0.0.1";
  launch.rendezvous_host = launch.address;
}

void choose_secret(const LaunchOptions& options, const Environment& environment, Launch& launch) {
  const std::optional<std::string> in_environment = environment("MUONWALK_SECRET");
  if (!options.secret_file.empty())
    launch.secret = secret_from_file(options.secret_file);
  else if (in_environment)
    launch.secret = secret_from_text(*in_environment, "MUONWALK_SECRET");
  const bool complete = launch.secret && launch.rendezvous_port != 0;
  if (complete || !launch.one_host) launch.session_file.clear();
  if (!launch.session_file.empty()) return;
  if (!launch.secret)
    throw UsageError(fmt::format(
        "{} need a secret to know each other by, and there is none; give every rank the same one with --secret-file "
        "FILE or in MUONWALK_SECRET, made for example with: (umask 077; head -c 32 /dev/urandom | base64 > secret)",
        who_started(launch)));
  if (launch.rendezvous_port == 0)
    throw UsageError(
        fmt::format("{} don't know where to meet; add --rendezvous HOST:PORT, or MUONWALK_RENDEZVOUS in the "
                    "environment, with rank 0's host and a free port of it",
                    who_started(launch)));
}

}  // namespace

std::optional<Launch> find_launch(const LaunchOptions& options, const Environment& environment) {
  std::optional<Launch> launch = find_launched_rank(options, environment);
  if (!launch) {
    const std::vector<std::pair<std::string, const std::string*>> left = {{"--rendezvous", &options.rendezvous},
                                                                          {"--interface", &options.interface},
                                                                          {"--secret-file", &options.secret_file}};
    for (const auto& [name, value] : left)
      if (!value->empty())
        throw UsageError(
            fmt::format("{} {} is for ranks that are started one by one, and nothing says that this is one; start it "
                        "with mpirun, srun or torchrun, or add --rank and --world-size",
                        name, as_typed(*value)));
    return std::nullopt;
  }
  if (const auto meeting = environment("MUONWALK_RENDEZVOUS")) choose_meeting(*meeting, "MUONWALK_RENDEZVOUS", *launch);
  if (!options.rendezvous.empty()) choose_meeting(options.rendezvous, "--rendezvous", *launch);
  const bool meets_nobody = launch->world_size == 1;
  if (meets_nobody && options.interface.empty()) launch->rendezvous_host.clear();
  choose_address(options, *launch);
  if (meets_nobody)
    launch->session_file.clear();
  else
    choose_secret(options, environment, *launch);
  return launch;
}

std::string launch_text(const Launch& launch) {
  return fmt::format("started by {}: rank {} of {} ({})", launch.launcher, launch.rank, launch.world_size,
                     launch.told_by);
}

RefusalDuty refusal_duty(const LaunchOptions& options, const Environment& environment) {
  RefusalDuty duty;
  try {
    const std::optional<Launch> launch = find_launched_rank(options, environment);
    if (!launch) return duty;
    duty.of_run = launch->rank == 0;
    duty.of_host = launch->by_hand || launch->local_rank == 0;
  } catch (const UsageError&) {
    // Who this process is can't be told, so nobody else may be relied on to print it.
  }
  return duty;
}

}  // namespace muonwalk::sim
