#include "sim/ranks/host_link.hpp"

#include <chrono>
#include <thread>

#ifdef __linux__
#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstring>

#include "sim/launch/open_file.hpp"
#endif

namespace muonwalk::sim {

std::string host_address(int host) { return "10.77.0." + std::to_string(host + 1); }

std::optional<LinkBytes> link_bytes(std::int64_t sent_at_least) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  std::optional<LinkBytes> counted = link_bytes();
  while (counted && counted->sent < sent_at_least && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    counted = link_bytes();
  }
  return counted;
}

#ifndef __linux__

std::optional<LinkBytes> link_bytes() { return std::nullopt; }
bool cut_host_link() { return false; }
bool make_host_link(int) { return false; }
bool set_interface_up(const char*, bool) { return false; }
bool start_host_link(int) { return false; }

#else

namespace {

constexpr char kLink[] = "link0";  // at both ends

// The message that makes a cable between this network and another one, for the kernel's netlink: a header, and
// attributes that hold others. Each part fills up four bytes.
struct LinkMessage {
  nlmsghdr header = {sizeof(LinkMessage), RTM_NEWLINK, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, 0, 0};
  ifinfomsg link = {};
  rtattr name_head = {RTA_LENGTH(sizeof kLink), IFLA_IFNAME};
  char name[RTA_ALIGN(sizeof kLink)] = {};
  struct Info {
    rtattr head = {sizeof(Info), IFLA_LINKINFO};
    rtattr kind_head = {RTA_LENGTH(4), IFLA_INFO_KIND};
    char kind[4] = {'v', 'e', 't', 'h'};
    struct Data {
      rtattr head = {sizeof(Data), IFLA_INFO_DATA};
      struct Peer {
        rtattr head = {sizeof(Peer), VETH_INFO_PEER};
        ifinfomsg link = {};
        rtattr name_head = {RTA_LENGTH(sizeof kLink), IFLA_IFNAME};
        char name[RTA_ALIGN(sizeof kLink)] = {};
        rtattr network_head = {RTA_LENGTH(sizeof(int)), IFLA_NET_NS_FD};
        int network = -1;
      } peer;
    } data;
  } info;
};

// Asks the kernel something about an interface.
bool ask(const char* interface, unsigned long what, ifreq& request) {
  const OpenFile channel(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  std::strcpy(request.ifr_name, interface);
  return channel && ioctl(channel.descriptor(), what, &request) == 0;
}

bool set_address(unsigned long what, const std::string& address) {
  ifreq request = {};
  sockaddr_in four = {};
  four.sin_family = AF_INET;
  inet_pton(AF_INET, address.c_str(), &four.sin_addr);
  std::memcpy(&request.ifr_addr, &four, sizeof four);
  return ask(kLink, what, request);
}

}  // namespace

std::optional<LinkBytes> link_bytes() {
  std::FILE* table = std::fopen("/proc/self/net/dev", "re");
  if (table == nullptr) return std::nullopt;
  std::optional<LinkBytes> found;
  char line[512];
  while (std::fgets(line, sizeof line, table) != nullptr) {
    char name[64];
    long long received = 0, sent = 0;  // the 1st and the 9th number
    if (std::sscanf(line, " %63[^:]: %lld %*d %*d %*d %*d %*d %*d %*d %lld", name, &received, &sent) == 3 &&
        std::strcmp(name, kLink) == 0)
      found = LinkBytes{sent, received};
  }
  std::fclose(table);
  return found;
}

bool set_interface_up(const char* interface, bool up) {
  ifreq request = {};
  if (!ask(interface, SIOCGIFFLAGS, request)) return false;
  request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  return ask(interface, SIOCSIFFLAGS, request);
}

bool cut_host_link() { return set_interface_up(kLink, false); }

bool make_host_link(int other_network) {
  LinkMessage message;
  message.info.data.peer.network = other_network;
  for (char* name : {message.name, message.info.data.peer.name}) std::strcpy(name, kLink);
  const OpenFile channel(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  alignas(nlmsghdr) char answer[4096];
  if (send(channel.descriptor(), &message, sizeof message, 0) != sizeof message ||
      recv(channel.descriptor(), answer, sizeof answer, 0) < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr))))
    return false;
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
  return header->nlmsg_type == NLMSG_ERROR && static_cast<const nlmsgerr*>(NLMSG_DATA(header))->error == 0;
}

bool start_host_link(int host) {
  return set_address(SIOCSIFADDR, host_address(host)) && set_address(SIOCSIFNETMASK, "255.255.255.0") &&
         set_interface_up(kLink, true);
}

#endif

}  // namespace muonwalk::sim
