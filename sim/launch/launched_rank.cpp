#include "sim/launch/launched_rank.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/text/words.hpp"

namespace muonwalk::sim {
namespace {

constexpr int kMostProcesses = 1 << 16;
// Reads the variables of one launcher.
class Variables {
 public:
  Variables(const Environment& environment, std::string launcher)
      : environment_(environment), launcher_(std::move(launcher)) {}

  bool has(const std::string& name) const { return environment_(name).has_value(); }
  std::string text(const std::string& name) const { return environment_(name).value_or(""); }

  int number(const std::string& name, int least, int most, const std::string& of) const {
    const std::optional<std::string> value = environment_(name);
    if (!value) refuse(fmt::format("{} is not set", name), fmt::format("a process of {} has it", launcher_));
    const std::optional<int> number = whole_number(*value, least, most);
    if (!number)
      refuse(fmt::format("{} is {}", name, as_typed(*value)), fmt::format("{} is from {} to {}", of, least, most));
    return *number;
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& expected) const {
    throw UsageError(
        fmt::format("the environment says that {} started this process, but {}, and {}; start it with {} "
                    "again, or say who it is with --rank and --world-size",
                    launcher_, what, expected, launcher_));
  }

 private:
  const Environment& environment_;
  std::string launcher_;
};

// Rank and size from two variables, and the same on this host where there are variables for it.
Launch rank_of(const Variables& variables, const std::string& launcher, const std::string& rank,
               const std::string& size, const std::string& local_rank, const std::string& local_size) {
  Launch launched;
  launched.launcher = launcher;
  launched.told_by = rank;
  launched.local_size = launched.world_size = variables.number(size, 1, kMostProcesses, "a number of processes");
  launched.local_rank = launched.rank =
      variables.number(rank, 0, launched.world_size - 1, fmt::format("a rank of {}", launched.world_size));
  launched.local_known = variables.has(local_size);
  if (launched.local_known)
    launched.local_size = variables.number(local_size, 1, launched.world_size, "the number of those on this host");
  if (variables.has(local_rank))
    launched.local_rank = variables.number(local_rank, 0, launched.local_size - 1, "a rank among those on this host");
  return launched;
}

Launch torchrun_rank(const Environment& environment) {
  const Variables variables(environment, "torchrun");
  Launch launched = rank_of(variables, "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  if (variables.has("MASTER_ADDR") || variables.has("MASTER_PORT")) {
    // torchrun's own store listens at this port, so ours takes the next one.
    const int port = variables.number("MASTER_PORT", 1, kMostPort - 1, "a port that has one after it");
    if (variables.text("MASTER_ADDR").empty())
      variables.refuse("MASTER_PORT comes without MASTER_ADDR", "both say where the ranks meet");
    launched.rendezvous_host = variables.text("MASTER_ADDR");
    launched.rendezvous_port = port + 1;
  }
  return launched;
}

Launch open_mpi_rank(const Environment& environment) {
  const Variables variables(environment, "Open MPI");
  Launch launched = rank_of(variables, "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE");
  if (const std::string folder = variables.text("PMIX_SERVER_TMPDIR"); !folder.empty()) {
    std::string job = variables.text("PMIX_NAMESPACE");
    for (char& c : job)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    launched.session_file = folder + "/muonwalk-" + job.substr(0, 100);
  }
  return launched;
}

Launch pmi_rank(const Environment& environment) {
  return rank_of(Variables(environment, "PMI"), "PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS");
}

// How many tasks Slurm has on a node, of a list such as "2(x3),1"; nothing where it can't be told.
std::optional<int> tasks_on_node(const std::string& list, int node) {
  std::size_t at = 0;
  while (at <= list.size()) {
    const std::string word = list.substr(at, list.find(',', at) - at);
    const std::size_t bracket = word.find("(x");
    const std::optional<int> tasks = whole_number(word.substr(0, bracket), 1, kMostProcesses);
    int nodes = 1;
    if (bracket != std::string::npos && word.back() == ')')
      nodes = whole_number(word.substr(bracket + 2, word.size() - bracket - 3), 1, kMostProcesses).value_or(0);
    if (!tasks || nodes == 0) return std::nullopt;
    if (node < nodes) return tasks;
    node -= nodes;
    at += word.size() + 1;
  }
  return std::nullopt;
}

// The first host of a list such as "node[01-03,05],other".
std::string first_host(const std::string& list) {
  const std::size_t end = list.find_first_of(",[");
  if (end == std::string::npos || list[end] == ',') return list.substr(0, end);
  const std::size_t first = list.find_first_of(",-]", end);
  const std::size_t close = list.find(']', end);
  if (first == std::string::npos || close == std::string::npos) return "";
  const std::size_t next = list.find(',', close);
  const std::size_t rest = next == std::string::npos ? list.size() : next;
  return list.substr(0, end) + list.substr(end + 1, first - end - 1) + list.substr(close + 1, rest - close - 1);
}

Launch slurm_rank(const Environment& environment) {
  const Variables variables(environment, "Slurm");
  Launch launched = rank_of(variables, "Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "");
  const int node = whole_number(variables.text("SLURM_NODEID"), 0, kMostProcesses).value_or(0);
  const std::optional<int> tasks = variables.text("SLURM_STEP_NUM_NODES") == "1"
                                       ? launched.world_size
                                       : tasks_on_node(variables.text("SLURM_STEP_TASKS_PER_NODE"), node);
  launched.local_known = tasks.has_value();
  launched.local_size = tasks.value_or(launched.world_size);
  launched.rendezvous_host = first_host(variables.text("SLURM_STEP_NODELIST"));
  if (!launched.rendezvous_host.empty()) {
    // Slurm gives no port. This one is the same for all processes of a step, and another for most others; ports that
    // the system gives to whoever asks for any begin later.
    const auto number = [&](const char* name) { return std::strtoull(variables.text(name).c_str(), nullptr, 10); };
    const std::uint64_t step = number("SLURM_JOB_ID") * 131 + number("SLURM_STEP_ID");
    launched.rendezvous_port = static_cast<int>(20000 + step % 10000);
  }
  return launched;
}

Launch rank_by_hand(const LaunchOptions& options) {
  if (!options.rank || !options.world_size)
    throw UsageError(fmt::format("{} {} says only half of who this process is; --rank R and --world-size N go together",
                                 options.rank ? "--rank" : "--world-size",
                                 options.rank ? *options.rank : *options.world_size));
  Launch launched;
  launched.rank = launched.local_rank = *options.rank;
  launched.world_size = launched.local_size = *options.world_size;
  launched.by_hand = true;
  launched.launcher = "hand";
  launched.told_by = "--rank";
  if (launched.world_size < 1 || launched.world_size > kMostProcesses)
    throw UsageError(fmt::format("--world-size {} is not a number of processes; it takes one from 1 to {}",
                                 launched.world_size, kMostProcesses));
  if (launched.rank < 0 || launched.rank >= launched.world_size)
    throw UsageError(fmt::format("--rank {} is not a rank of --world-size {}; it takes one from 0 to {}", launched.rank,
                                 launched.world_size, launched.world_size - 1));
  return launched;
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
}

std::optional<int> whole_number(const std::string& text, int least, int most) {
  const std::optional<int> number = number_from<int>(text);
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

std::optional<Launch> find_launched_rank(const LaunchOptions& options, const Environment& environment) {
  const auto has = [&](const char* name) { return environment(name).has_value(); };
  if (options.rank || options.world_size) return rank_by_hand(options);
  // RANK and WORLD_SIZE alone may be left over from anything.
  if (has("TORCHELASTIC_RUN_ID")) return torchrun_rank(environment);
  if (has("OMPI_COMM_WORLD_RANK") || has("OMPI_COMM_WORLD_SIZE")) return open_mpi_rank(environment);
  // A batch script has SLURM_PROCID too; a shell for a person (srun --pty) is a step of one task. Neither is a rank.
  const bool step = has("SLURM_STEP_NUM_TASKS") && has("SLURM_PROCID") && !has("SLURM_PTY_PORT");
  if (has("PMI_RANK") || has("PMI_SIZE")) {
    // Slurm sets these too, for programs that speak PMI.
    const bool same = environment("PMI_RANK") == environment("SLURM_PROCID") &&
                      environment("PMI_SIZE") == environment("SLURM_STEP_NUM_TASKS");
    if (!step || !same) return pmi_rank(environment);
  }
  if (step) return slurm_rank(environment);
  return std::nullopt;
}

}  // namespace muonwalk::sim
