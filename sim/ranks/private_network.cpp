#include "sim/ranks/private_network.hpp"

#ifdef __linux__
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "sim/ranks/host_link.hpp"
#include "sim/ranks/interrupt.hpp"
#endif

namespace muonwalk::sim {

#ifndef __linux__

PrivateNetwork::PrivateNetwork(int) {}
bool PrivateNetwork::enter(int) const { return false; }

#else

namespace {

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

#endif

}  // namespace muonwalk::sim
