#include "sim/ranks/private_network.hpp"

#include <chrono>
#include <thread>

#ifdef __linux__
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "sim/ranks/interrupt.hpp"
#endif

namespace muonwalk::sim {

std::string host_address(int host) { return "10.77.0." + std::to_string(host + 1); }

#ifndef __linux__

PrivateNetwork::PrivateNetwork(int) {}
bool PrivateNetwork::enter(int) const { return false; }
static std::optional<LinkBytes> counted_by_now() { return std::nullopt; }
bool cut_host_link() { return false; }

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

// Starts or stops an interface of the network that this process is in, "lo".
bool set_interface_up(const char* interface, bool up) {
  ifreq request = {};
  if (!ask(interface, SIOCGIFFLAGS, request)) return false;
  request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  return ask(interface, SIOCSIFFLAGS, request);
}

// Lays the cable, from the network that this process is in to another one, an open file. False where the system does
// not allow it, or knows no such interfaces.
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

// Gives this end its address, and starts it.
bool start_host_link(int host) {
  return set_address(SIOCSIFADDR, host_address(host)) && set_address(SIOCSIFNETMASK, "255.255.255.0") &&
         set_interface_up(kLink, true);
}

bool write_file(const char* path, const std::string& text) {
  const OpenFile file(open(path, O_WRONLY | O_CLOEXEC));
  return file && write(file.descriptor(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Everybody keeps the number that they have: seen from inside, a user is who they are outside.
bool keep_user_and_group(uid_t user, gid_t group) {
  const std::string u = std::to_string(user), g = std::to_string(group);
  return write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/uid_map", u + ' ' + u + " 1") &&
         write_file("/proc/self/gid_map", g + ' ' + g + " 1");
}

// What is handed over: the users' namespace, which is none where root made the networks, and the networks.
constexpr std::size_t kMostFiles = 1 + PrivateNetwork::kMostHosts;

// A message of one byte, with room for these open files.
struct FileMessage {
  char byte = 0;
  iovec data = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))] = {};
  msghdr header = {};
  explicit FileMessage(std::size_t files) {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(files * sizeof(int));
  }
  FileMessage(const FileMessage&) = delete;
  FileMessage& operator=(const FileMessage&) = delete;
};

// Hands open files to the process at the other end.
bool send_files(int channel, const int* files, std::size_t count) {
  FileMessage message(count);
  cmsghdr* header = CMSG_FIRSTHDR(&message.header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(header), files, count * sizeof(int));
  return sendmsg(channel, &message.header, MSG_NOSIGNAL) == 1;
}

// How many files have come; 0 when the other end has closed without any.
std::size_t receive_files(int channel, int (&files)[kMostFiles]) {
  FileMessage message(kMostFiles);
  ssize_t got = 0;
  while ((got = recvmsg(channel, &message.header, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  const cmsghdr* header = got == 1 ? CMSG_FIRSTHDR(&message.header) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return 0;
  const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  std::memcpy(files, CMSG_DATA(header), count * sizeof(int));
  return count;
}

int own_network() { return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC); }

// In a child process: makes the namespaces and hands them over. They last as long as somebody has them open.
void make_networks(int channel, int hosts) {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  const bool as_root = unshare(CLONE_NEWNET) == 0;
  if (!as_root && (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 || !keep_user_and_group(user, group))) return;
  std::vector<int> files;
  for (int host = 0; host < hosts; ++host) {
    if (host > 0 && unshare(CLONE_NEWNET) != 0) return;
    files.push_back(own_network());
    if (!set_interface_up("lo", true) || files.back() < 0) return;
    // The cable begins at the second host.
    if (host > 0 && !(make_host_link(files[0]) && start_host_link(host))) return;
  }
  if (hosts > 1 && (setns(files[0], CLONE_NEWNET) != 0 || !start_host_link(0))) return;
  if (!as_root) files.push_back(open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC));
  if (files.back() >= 0) send_files(channel, files.data(), files.size());
}

// How long a child may take: whoever stops it must not stop the run.
constexpr auto kChildLimit = std::chrono::seconds(2);

// Runs `work` in a child process: true when it ended with 0 in time; nothing when somebody else's signal ended it. The
// child hears no interrupt, which is for the program, and dies with it.
template <class Work>
std::optional<bool> run_in_child(const Work& work) {
  const InterruptHold hold;
  const pid_t child = fork();
  if (child == 0) {
    leave_interrupts_to_the_parent();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(work() ? 0 : 1);
  }
  if (child < 0) return false;
  const auto deadline = std::chrono::steady_clock::now() + kChildLimit;
  int status = 1;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0 && std::chrono::steady_clock::now() < deadline) usleep(200);
  if (ended == 0) {
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return false;
  }
  if (ended == child && WIFSIGNALED(status)) return std::nullopt;
  return ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// True when it ended well. A child that somebody kills says nothing of what the system allows, so another one is tried.
template <class Work>
bool in_child(const Work& work) {
  std::optional<bool> well;
  for (int child = 0; child < 3 && !well; ++child) well = run_in_child(work);
  return well.value_or(false);
}

}  // namespace

PrivateNetwork::PrivateNetwork(int hosts) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  const OpenFile channel(ends[0]);
  OpenFile of_child(ends[1]);
  const bool made = in_child([&] { return make_networks(of_child.descriptor(), hosts), true; });
  of_child.close();
  int files[kMostFiles] = {-1, -1, -1};
  if (!made || receive_files(channel.descriptor(), files) < static_cast<std::size_t>(hosts)) return;
  for (int host = 0; host < hosts; ++host) networks_[host] = OpenFile(files[host]);
  users_ = OpenFile(files[hosts]);
  // All ranks are in it or none, so it is tried first by somebody who is none.
  for (int host = 0; host < hosts; ++host)
    if (exists() && !in_child([this, host] { return enter(host); })) networks_[0].close();
}

bool PrivateNetwork::enter(int host) const {
  if (!exists() || (users_ && setns(users_.descriptor(), CLONE_NEWUSER) != 0)) return false;
  if (setns(networks_[host].descriptor(), CLONE_NEWNET) != 0) return false;
  // Who enters a user namespace is hidden from debuggers until it says that it need not be.
  prctl(PR_SET_DUMPABLE, 1);
  return true;
}

static std::optional<LinkBytes> counted_by_now() {
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

bool cut_host_link() { return set_interface_up(kLink, false); }

#endif

std::optional<LinkBytes> link_bytes(std::int64_t sent_at_least) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  std::optional<LinkBytes> counted = counted_by_now();
  while (counted && counted->sent < sent_at_least && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    counted = counted_by_now();
  }
  return counted;
}

}  // namespace muonwalk::sim
