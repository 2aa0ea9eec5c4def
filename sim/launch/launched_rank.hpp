#pragma once

// Private to launch.cpp and launched_rank.cpp.

#include <optional>
#include <string>

#include "sim/launch/launch.hpp"

namespace muonwalk::sim {

/// The largest number of a port.
constexpr int kMostPort = 65535;

/// Where ranks meet.
struct HostAndPort {
  std::string host;  ///< a name or an address, without brackets
  int port = 0;      ///< from 1 to kMostPort
};

/// Who this process is, by one launcher or by hand, and what that launcher knows of the meeting.
struct LaunchedRank {
  int rank = 0;                        ///< among all
  int world_size = 1;                  ///< how many there are
  std::optional<int> local_rank;       ///< among those on this host, where it is known
  std::optional<int> local_size;       ///< how many there are on this host, where it is known
  std::string launcher;                ///< its name, or "hand"
  std::string told_by;                 ///< the variable or option that told the rank
  std::optional<HostAndPort> meeting;  ///< where the launcher says one
  std::string session_file;            ///< in the launcher's private folder; empty where it has none
};

/// Looks for the launcher that started this process: options first, then the environment. Nothing where none did.
/// Throws UsageError, one sentence, where what it says makes no sense.
std::optional<LaunchedRank> find_launched_rank(const LaunchOptions& options, const Environment& environment);

/// The whole of `text` as a decimal number from `least` to `most`; nothing where it is none.
std::optional<int> whole_number(const std::string& text, int least, int most);

}  // namespace muonwalk::sim
