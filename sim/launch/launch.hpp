#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sim/transport/secret.hpp"

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

/// A process that a launcher, or somebody by hand, has started as one rank of a run of several processes.
struct Launch {
  int rank = 0;                 ///< this process's number
  int world_size = 1;           ///< processes of the run
  int local_rank = 0;           ///< its number among those on this host; `rank` where that is not known
  int local_size = 1;           ///< processes on this host; the world size where that is not known
  bool local_known = false;     ///< the launcher says how many of them are on this host
  bool one_host = true;         ///< all of them are on this host, or may only talk over its loopback
  bool by_hand = false;         ///< started with --rank and --world-size
  std::string launcher;         ///< "Open MPI", "torchrun", "Slurm", "PMI", or "hand"
  std::string told_by;          ///< the variable or option that says so: "OMPI_COMM_WORLD_RANK", "--rank"
  std::string address;          ///< the numeric address that this process binds its ports to: "127.0.0.1", "10.0.0.2"
  std::string rendezvous_host;  ///< the host on which rank 0 listens: a name or an address
  int rendezvous_port = 0;  ///< the port at which it listens; 0 where rank 0 takes any and tells it in the session file
  /// A file in a folder that is the launcher's and this user's alone, in which rank 0 leaves its port and the secret;
  /// empty where both are known otherwise, and with a single rank, who meets nobody.
  std::string session_file;
  std::optional<Secret> secret;  ///< the launch's; nothing where rank 0 makes one and tells it in the session file
};

/// Looks for the launcher that started this process: options first, then the environment. Nothing where none did. Who
/// it is, and what that launcher knows of the meeting: where it names none, the host is empty and the port 0. Throws
/// UsageError, one sentence, where what it says makes no sense.
std::optional<Launch> find_launched_rank(const LaunchOptions& options, const Environment& environment);

/// The whole of `text` as a decimal number from `least` to `most`; nothing where it is none.
std::optional<int> whole_number(const std::string& text, int least, int most);

/// Which rank of which launch this process is; nothing where no launcher has started it and no --rank is given. Options
/// win over the environment; of launchers that were started by another, the inner one counts: torchrun, then Open MPI,
/// then PMI, then Slurm. Reads the secret and looks up the interface. Throws UsageError, one sentence, for a set that
/// is partial or contradicts itself, for an interface that this host has not, for a secret that anybody else could
/// read, and where there is none.
std::optional<Launch> find_launch(const LaunchOptions& options, const Environment& environment);

/// "started by Open MPI: rank 0 of 8 (OMPI_COMM_WORLD_RANK)".
std::string launch_text(const Launch& launch);

/// Whether this process should print a refusal, or another one that has the same to say does.
struct RefusalDuty {
  bool of_run = true;   ///< a refusal that all ranks come to, such as a wrong option: printed by rank 0
  bool of_host = true;  ///< one about this host, such as a secret file: printed by its first rank, and by all by hand
};
/// Who prints a refusal. Never throws: where a launch makes no sense, everybody prints.
RefusalDuty refusal_duty(const LaunchOptions& options, const Environment& environment);

/// The secret of a text, as MUONWALK_SECRET or a file has it, without the white space at both ends. `from` names it in
/// the UsageError that is thrown where it is shorter than 16 bytes, or 32 digits where all of it are hex digits.
Secret secret_from_text(const std::string& text, const std::string& from);

/// The secret in a file that is this user's, that nobody else may read, and no symbolic link; else UsageError.
Secret secret_from_file(const std::string& path);

/// Reads an open file that has to be this user's alone. Returns what is wrong with it, for a sentence; empty: nothing.
std::string read_private_file(int descriptor, std::string& text);

/// What is wrong with an open folder that has to be this user's alone; empty when nothing is.
std::string private_folder_complaint(int descriptor);

/// The secret of one run: from the launch's secret and a number that rank 0 draws for the run, so that two runs with
/// one secret file don't meet.
Secret secret_of_run(const Secret& launch, const Challenge& run_number);

}  // namespace muonwalk::sim
