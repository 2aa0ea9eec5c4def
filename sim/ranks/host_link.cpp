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

#include <array>
#include <cstdio>
#include <cstring>
#include <functional>

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

// A message of the kernel's netlink: a header, and attributes that may hold others.
class NetlinkMessage {
 public:
  template <class Part>
  void add(const Part& part) {
    add(&part, sizeof part);
  }
  void add(const void* bytes, std::size_t count) {
    std::memcpy(bytes_.data() + size_, bytes, count);
    size_ += NLMSG_ALIGN(count);
  }
  void attribute(unsigned short type, const void* bytes, std::size_t count) {
    attribute(
        type, [&] { add(bytes, count); }, count);
  }
  // One that holds what `inside` adds.
  void attribute(unsigned short type, const std::function<void()>& inside, std::size_t count = 0) {
    const std::size_t at = size_;
    add(rtattr{0, type});
    inside();
    const std::size_t length = count > 0 ? RTA_LENGTH(count) : size_ - at;
    reinterpret_cast<rtattr*>(&bytes_[at])->rta_len = static_cast<unsigned short>(length);
  }
  // Sends it; true when the kernel has done what it says.
  bool send() {
    reinterpret_cast<nlmsghdr*>(bytes_.data())->nlmsg_len = static_cast<std::uint32_t>(size_);
    const OpenFile channel(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    alignas(nlmsghdr) char answer[4096];
    if (::send(channel.descriptor(), bytes_.data(), size_, 0) != static_cast<ssize_t>(size_) ||
        recv(channel.descriptor(), answer, sizeof answer, 0) < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr))))
      return false;
    const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
    return header->nlmsg_type == NLMSG_ERROR && static_cast<const nlmsgerr*>(NLMSG_DATA(header))->error == 0;
  }

 private:
  alignas(nlmsghdr) std::array<char, 512> bytes_ = {};  // the one message that is sent has fewer than half of them
  std::size_t size_ = 0;
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
  NetlinkMessage message;
  nlmsghdr header = {};
  header.nlmsg_type = RTM_NEWLINK;
  header.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;
  message.add(header);
  message.add(ifinfomsg{});
  message.attribute(IFLA_IFNAME, kLink, sizeof kLink);
  message.attribute(IFLA_LINKINFO, [&] {
    message.attribute(IFLA_INFO_KIND, "veth", 4);
    message.attribute(IFLA_INFO_DATA, [&] {
      message.attribute(VETH_INFO_PEER, [&] {
        message.add(ifinfomsg{});
        message.attribute(IFLA_IFNAME, kLink, sizeof kLink);
        message.attribute(IFLA_NET_NS_FD, &other_network, sizeof other_network);
      });
    });
  });
  return message.send();
}

bool start_host_link(int host) {
  return set_address(SIOCSIFADDR, host_address(host)) && set_address(SIOCSIFNETMASK, "255.255.255.0") &&
         set_interface_up(kLink, true);
}

#endif

}  // namespace muonwalk::sim
