#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace muonwalk::testing {

/// What a running session holds that could outlive it or be seen from outside.
struct Belongings {
  std::set<long> sockets;  ///< inodes of all its sockets
  int listening = 0;       ///< TCP sockets of its own that listen
  int connected = 0;       ///< and that are connected
  std::vector<std::string>
      not_loopback;                ///< lines of /proc/PID/net/{tcp,tcp6,udp,udp6} of its sockets on other addresses
  std::vector<std::string> files;  ///< what it has open or mapped in /tmp, /dev/shm and TMPDIR (not its output)
};
Belongings belongings_of_session(pid_t session);

/// Those of the sockets that still listen or are connected, as lines of /proc/net/tcp and tcp6.
std::vector<std::string> still_open(const std::set<long>& sockets);

/// Those that do so even after a while, at most `limit_seconds`: the system closes the sockets of a process that has
/// ended, and on a busy machine it does so a moment later.
std::vector<std::string> left_open(const std::set<long>& sockets, double limit_seconds);

/// Waits until no process of the session is left, at most `limit_seconds`; true when none is.
bool wait_until_gone(pid_t session, double limit_seconds);

}  // namespace muonwalk::testing
