#include "tests/ranks/left_behind.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/ranks/run_program.hpp"

namespace muonwalk::testing {
namespace {

struct Socket {
  std::string line;
  std::string address;  // hexadecimal, as the kernel writes it
  int state = 0;
  long inode = 0;
};

constexpr int kEstablished = 0x01, kListen = 0x0A;

// In the network of a process.
std::vector<Socket> sockets_in(const std::string& process, const std::string& table) {
  std::vector<Socket> sockets;
  std::ifstream file("/proc/" + process + "/net/" + table);
  std::string line;
  std::getline(file, line);  // the heading
  while (std::getline(file, line)) {
    // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
    std::istringstream fields(line);
    std::string number, local, remote, state, queues, timer, retransmits, uid, timeout;
    Socket socket{line, "", 0, 0};
    fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >> socket.inode;
    socket.address = local.substr(0, local.find(':'));
    socket.state = static_cast<int>(std::strtol(state.c_str(), nullptr, 16));
    sockets.push_back(socket);
  }
  return sockets;
}

bool is_loopback(const std::string& address) {
  return address == "0100007F" || address == "00000000000000000000000001000000" ||
         address == "0000000000000000FFFF00000100007F";
}

bool is_temporary(const std::string& path) {
  const char* folder = std::getenv("TMPDIR");
  return path.rfind("/tmp/", 0) == 0 || path.rfind("/dev/shm/", 0) == 0 ||
         (folder != nullptr && path.rfind(std::string(folder) + "/", 0) == 0);
}

}  // namespace

Belongings belongings_of_session(pid_t session) {
  Belongings found;
  std::map<std::string, std::string> process_of_network;
  for (pid_t pid : processes_of_session(session)) {
    const std::string folder = "/proc/" + std::to_string(pid);
    std::error_code gone, unreadable;
    const auto network = std::filesystem::read_symlink(folder + "/ns/net", gone);
    if (!gone) process_of_network[network.string()] = std::to_string(pid);
    for (std::filesystem::directory_iterator fd(folder + "/fd", gone), end; !gone && fd != end; fd.increment(gone)) {
      const std::string path = std::filesystem::read_symlink(fd->path(), unreadable).string();
      if (path.rfind("socket:[", 0) == 0) found.sockets.insert(std::atol(path.c_str() + 8));
      if (std::atoi(fd->path().filename().c_str()) > 2 && is_temporary(path)) found.files.push_back(path);
    }
    std::ifstream maps(folder + "/maps");
    for (std::string line; std::getline(maps, line);) {
      const std::size_t path = line.find('/');
      // The program itself and its libraries may lie in a build folder below /tmp; those are mapped privately.
      if (path != std::string::npos && is_temporary(line.substr(path)) && line.find("s ") < path)
        found.files.push_back(line);
    }
  }
  for (const auto& [network, process] : process_of_network)
    for (const char* table : {"tcp", "tcp6", "udp", "udp6"})
      for (const Socket& socket : sockets_in(process, table)) {
        if (found.sockets.count(socket.inode) == 0) continue;
        if (table[0] == 't' && socket.state == kListen) ++found.listening;
        if (table[0] == 't' && socket.state == kEstablished) ++found.connected;
        if (!is_loopback(socket.address)) found.not_loopback.push_back(socket.line);
      }
  return found;
}

std::vector<std::string> still_open(const std::set<long>& sockets) {
  std::vector<std::string> open;
  for (const char* table : {"tcp", "tcp6"})
    for (const Socket& socket : sockets_in("self", table))
      if (sockets.count(socket.inode) > 0 && (socket.state == kListen || socket.state == kEstablished))
        open.push_back(socket.line);
  return open;
}

std::vector<std::string> left_open(const std::set<long>& sockets, double limit_seconds) {
  std::vector<std::string> open = still_open(sockets);
  for (double waited = 0; !open.empty() && waited <= limit_seconds; waited += 0.005) {
    usleep(5000);
    open = still_open(sockets);
  }
  return open;
}

bool wait_until_gone(pid_t session, double limit_seconds) {
  for (double waited = 0; !processes_of_session(session).empty(); waited += 0.005) {
    if (waited > limit_seconds) return false;
    usleep(5000);
  }
  return true;
}

}  // namespace muonwalk::testing
