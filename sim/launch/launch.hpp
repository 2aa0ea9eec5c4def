#pragma once

#include <optional>
#include <string>

#include "sim/launch/launched_rank.hpp"

namespace muonwalk::sim {

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

/// The secret in a file that is this user's, that nobody else may read, and that is not a symbolic link; else
/// UsageError.
Secret secret_from_file(const std::string& path);

/// The secret of one run: from the launch's secret and a number that rank 0 draws for the run, so that two runs with
/// one secret file don't meet.
Secret secret_of_run(const Secret& launch, const Challenge& run_number);

}  // namespace muonwalk::sim
