#pragma once

#include <functional>
#include <optional>
#include <string>

namespace muonwalk::sim {

/// The value of an environment variable; nothing where it is not set. A function, so that tests can make one up.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The environment of this process.
Environment process_environment();

/// What the command line says of a launch; what is left out is empty.
struct LaunchOptions {
  std::optional<int> rank;        ///< `--rank`
  std::optional<int> world_size;  ///< `--world-size`
  std::string rendezvous;         ///< `--rendezvous HOST:PORT`, an IPv6 address in brackets
  std::string interface;          ///< `--interface NAME` or an address of this host
  std::string secret_file;        ///< `--secret-file FILE`
};

/// The largest number of a port.
constexpr int kMostPort = 65535;

/// Where ranks meet.
struct HostAndPort {
  std::string host;  ///< a name or an address, without brackets
  int port = 0;      ///< a number from 1 to kMostPort
};

/// Who this process is, by one launcher or by hand, and what that launcher knows of the meeting.
struct LaunchedRank {
  int rank = 0;                        ///< its number among all
  int world_size = 1;                  ///< processes of the run
  std::optional<int> local_rank;       ///< its number among those on this host, where that is known
  std::optional<int> local_size;       ///< processes on this host, where that is known
  std::string launcher;                ///< the launcher's name, or "hand"
  std::string told_by;                 ///< the variable or option that told the rank
  std::optional<HostAndPort> meeting;  ///< nothing where the launcher names none
  std::string session_file;            ///< a file in the launcher's private folder; empty where it has none
};

/// Looks for the launcher that started this process: options first, then the environment. Nothing where none did.
/// Throws UsageError, one sentence, where what it says makes no sense.
std::optional<LaunchedRank> find_launched_rank(const LaunchOptions& options, const Environment& environment);

/// The whole of `text` as a decimal number from `least` to `most`; nothing where it is none.
std::optional<int> whole_number(const std::string& text, int least, int most);

}  // namespace muonwalk::sim
